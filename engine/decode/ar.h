// Plain autoregressive decoding: one row a step, one token a step.
//   lossless  by definition: this is what the others are compared with
//   cost      1 target step of 1 row per token
#pragma once

#include "engine/decode/decoder.h"
#include "engine/decode/verify/verify.h"

namespace engine {

class ArDecoder : public Decoder {
 public:
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
