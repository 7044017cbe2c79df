// Plain autoregressive decoding: one row and one token per step.
//   lossless  by definition: every other decoder is compared with it
//   cost      1 target step of 1 row per token
#pragma once

#include "engine/decode/decoder.h"
#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

/// The options of `ar`: there are none.
struct ArOptions final : DecoderOptions {
  /// Name, summary and needs of the decoder; the registry adds the options.
  static DecoderInfo describe();
  void bind(OptionBinder& /*binder*/) override {}
  std::unique_ptr<Decoder> make(const DecoderContext& context) const override;
};

/// Feeds the last token and emits the target's next one.
class ArDecoder : public Decoder {
 public:
  /// Samples as `context.sampling` says.
  explicit ArDecoder(const DecoderContext& context);
  Wants wants() const override { return verifier_.wants(); }
  TokenTree propose(const Sequence& prefix) override;
  const VerifyRequest* verify_request(const Sequence& prefix, const TokenTree& tree) override {
    return verifier_.verify_request(prefix, tree);
  }
  Decision verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) override;

 private:
  Verifier verifier_;
};

}  // namespace engine
