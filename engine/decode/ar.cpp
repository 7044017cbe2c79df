#include "engine/decode/ar.h"

namespace engine {

DecoderInfo ArOptions::describe() {
  DecoderInfo info;
  info.name = "ar";
  info.title = "Autoregressive";
  info.summary =
      "Generates one token per step: the baseline whose output every lossless decoder reproduces.";
  info.reference = "plain decoding";
  info.supports_rejection = true;
  return info;
}

std::unique_ptr<Decoder> ArOptions::make(const DecoderContext& context) const {
  return std::make_unique<ArDecoder>(context);
}

ArDecoder::ArDecoder(const DecoderContext& context)
    : verifier_(context.sampling, context.uniforms) {}

TokenTree ArDecoder::propose(const Sequence& prefix) {
  TokenTree tree;
  tree.add(prefix.last(), -1, RowTag{});
  return tree;
}

Decision ArDecoder::verify(const Sequence& prefix, const TokenTree& tree, const StepOutput& out) {
  return verifier_(prefix, tree, out);
}

}  // namespace engine
