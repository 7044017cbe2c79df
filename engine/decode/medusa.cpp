#include "engine/decode/medusa.h"

#include <algorithm>

#include "engine/event/clock.h"

namespace engine {
namespace {

MedusaHeads& heads_of(const DecoderContext& context) {
  auto* heads = dynamic_cast<MedusaHeads*>(context.heads);
  ensure(heads != nullptr, "medusa was created without its heads");
  return *heads;
}

}  // namespace

DecoderInfo MedusaOptions::describe() {
  DecoderInfo info;
  info.name = "medusa";
  info.title = "Medusa";
  info.summary =
      "Several draft heads on the model's last hidden state, one for each of the next positions, "
      "propose a tree of candidates. The model verifies the tree in one step.";
  info.reference = "Cai et al. 2024, arXiv:2401.10774";
  info.reads_prompt_state = true;
  describe_needs(info);
  return info;
}

std::unique_ptr<Decoder> MedusaOptions::make(const DecoderContext& context) const {
  return std::make_unique<MedusaDecoder>(context, *this);
}

MedusaDecoder::MedusaDecoder(const DecoderContext& context, const MedusaOptions& options)
    : HeadTreeDecoder(context, options, heads_of(context).n_heads()), heads_(heads_of(context)) {}

// From the state of position t the target picks token t + 1, and head d guesses token t + 1 + d.
// Before the first step token t + 1 is the prompt's last token, the root of the tree, so the heads
// start from the state of the position before it.
void MedusaDecoder::begin(const Sequence& prefix) {
  const std::span<const float> state = prefix.prompt_state();
  begin_with_hidden(state, state.size());
}

// Without the prompt's hidden state the first step drafts nothing. The step's forward then returns
// a state.
bool MedusaDecoder::begin_draft(const Sequence& /*prefix*/, int depth) {
  const std::vector<float> states = take_hidden();
  if (states.empty() || depth == 0) return false;
  DraftForward forward{.begun = now_ns(), .n_rows = 1};
  int width = 1;
  for (int d = 1; d <= depth; d++) width = std::max(width, ranks().width_at(d));
  ranked_ = heads_.ranked(std::span(states).last(state_dim()), depth, width);
  forward.ended = now_ns();
  add_forward(forward);
  return true;
}

std::vector<RankedTokens> MedusaDecoder::rank(const TokenTree& /*tree*/,
                                              int depth,
                                              std::span<const int> /*parents*/,
                                              int /*width*/) {
  return {ranked_[static_cast<std::size_t>(depth - 1)]};
}

}  // namespace engine
