#include "engine/decode/medusa.h"

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

// Behind a prompt no state is known yet: the first step is plain and brings one.
bool MedusaDecoder::begin_draft(const Sequence& /*prefix*/, int depth) {
  const std::vector<float> states = take_hidden();
  if (states.empty() || depth == 0) return false;
  DraftForward told{.begun = now_ns(), .n_rows = 1};
  logits_ = heads_.logits(std::span(states).last(state_dim()), depth);
  told.ended = now_ns();
  tell_forward(told);
  return true;
}

std::vector<RankedTokens> MedusaDecoder::rank(const TokenTree& /*tree*/,
                                              int depth,
                                              std::span<const int> /*parents*/,
                                              int width) {
  const auto n = static_cast<std::size_t>(heads_.vocab_size());
  const auto head = static_cast<std::size_t>(depth - 1);
  return {ranked_tokens(std::span(logits_).subspan(head * n, n), width)};
}

}  // namespace engine
