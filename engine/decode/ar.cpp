#include "engine/decode/ar.h"

namespace engine {

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
