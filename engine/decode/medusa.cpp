#include "engine/decode/medusa.h"

#include <algorithm>

#include "engine/event/clock.h"

namespace engine {
namespace {

MedusaHeads& heads_of(const DecoderContext& context) {
  auto* heads = dynamic_cast<MedusaHeads*>(context.heads);
  ensure(heads != nullptr, "medusa was made without its heads");
  return *heads;
}

}  // namespace

MedusaDecoder::MedusaDecoder(const DecoderContext& context)
    : HeadTreeDecoder(context, heads_of(context).n_heads()), heads_(heads_of(context)) {}

// The heads speak of the tokens behind the one that follows their state. Before the first step that
// is the prompt's last token, on which the tree hangs: the state is that of the position before it.
void MedusaDecoder::begin(const Sequence& prefix) {
  const std::span<const float> state = prefix.prompt_state();
  begin_with_hidden(state, state.size());
}

// Behind a prompt whose state is not known the first step is plain, and brings one.
bool MedusaDecoder::begin_draft(const Sequence& /*prefix*/, int depth) {
  const std::vector<float> states = take_hidden();
  if (states.empty() || depth == 0) return false;
  DraftForward told{.begun = now_ns(), .n_rows = 1};
  int width = 1;
  for (int d = 1; d <= depth; d++) width = std::max(width, ranks().width_at(d));
  ranked_ = heads_.ranked(std::span(states).last(state_dim()), depth, width);
  told.ended = now_ns();
  tell_forward(told);
  return true;
}

std::vector<RankedTokens> MedusaDecoder::rank(const TokenTree& /*tree*/,
                                              int depth,
                                              std::span<const int> /*parents*/,
                                              int /*width*/) {
  return {ranked_[static_cast<std::size_t>(depth - 1)]};
}

}  // namespace engine
