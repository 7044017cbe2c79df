#include "engine/decode/guess/textbook_jacobi.h"

#include <algorithm>
#include <utility>

#include "engine/decode/verify/verify.h"

namespace engine {

TokenTree block_rows(TokenId last, std::span<const TokenId> point) {
  TokenTree tree;
  tree.add(last, -1, RowTag{});
  for (std::size_t i = 0; i + 1 < point.size(); i++) {
    tree.add(point[i], static_cast<int>(i),
             RowTag{RowTag::Kind::Block, static_cast<std::int16_t>(i), 0});
  }
  return tree;
}

std::vector<TokenId> picks_of(const StepOutput& out) {
  std::vector<TokenId> picks;
  for (const kernels::Picked& picked : out.picked) picks.push_back(picked.id);
  return picks;
}

JacobiTrajectory textbook_jacobi(LanguageModel& model,
                                 Sequence& prefix,
                                 std::span<const TokenId> guess,
                                 const Sampling& sampling) {
  ensure(!guess.empty(), "a Jacobi block must have at least one token");
  JacobiTrajectory trajectory;
  trajectory.points.emplace_back(guess.begin(), guess.end());
  for (;;) {
    const TokenTree tree = block_rows(prefix.last(), trajectory.points.back());
    BatchItem item;
    item.cache = &prefix.cache();
    item.tree = &tree;
    item.prefix = prefix.cached_tokens();
    item.sampling = sampling;
    const std::vector<StepOutput> out = model.forward(std::span(&item, 1), Wants{});
    prefix.cache().commit({});
    trajectory.n_forwards++;
    std::vector<TokenId> refined = picks_of(out.front());
    if (refined == trajectory.points.back()) return trajectory;
    trajectory.points.push_back(std::move(refined));
  }
}

TextbookJacobiDecoder::TextbookJacobiDecoder(const DecoderContext& context,
                                             int block,
                                             BlockFiller::Fill fill)
    : target_(context.target),
      limits_(context.limits),
      block_(block),
      filler_(fill, context.sampling.seed) {}

void TextbookJacobiDecoder::begin(const Sequence& prefix) {
  open_block(prefix);
}

void TextbookJacobiDecoder::open_block(const Sequence& prefix) {
  const int size = std::min(block_, room_left(prefix, limits_, target_.max_seq_len()));
  first_pos_ = static_cast<int>(prefix.tokens().size());
  n_final_ = 0;
  point_.clear();
  for (int i = 0; i < size; i++) point_.push_back(filler_(prefix, first_pos_ + i));
  counts_.open(point_);
  events_.push_back(counts_.event(first_pos_, point_, 0, false));
}

TokenTree TextbookJacobiDecoder::propose(const Sequence& prefix) {
  return block_rows(prefix.last(), point_);
}

// Position i is final once all positions before it came back unchanged, but a block ends only after
// a forward that changes nothing. The first position depends on the prefix alone, so each iteration
// makes at least one more position final. A block of n positions therefore converges within n
// iterations, and one more iteration finds that nothing changes.
Decision TextbookJacobiDecoder::verify(const Sequence& /*prefix*/,
                                       const TokenTree& tree,
                                       const StepOutput& out) {
  refined_ = picks_of(out);
  if (refined_ == point_) return verify_exact_match(tree, out);
  ensure(
      counts_.iteration() < static_cast<int>(point_.size()),
      "a Jacobi block must converge in at most as many iterations as it has positions, plus one");
  return {};
}

void TextbookJacobiDecoder::committed(const Sequence& prefix, const Decision& /*cut*/) {
  const bool converged = refined_ == point_;
  const auto changed = std::ranges::mismatch(refined_, point_).in1;
  const auto n_same = static_cast<int>(changed - refined_.begin());
  n_final_ = std::max(n_final_, std::min(n_same + 1, static_cast<int>(point_.size())));
  point_ = refined_;
  counts_.refine(point_);
  events_.push_back(counts_.event(first_pos_, point_, n_final_, converged));
  if (!converged) return;
  const bool at_eos = prefix.stop_reason() == StopReason::Eos;
  counts_.end_block(at_eos ? limits_.eos_ids : std::vector<TokenId>{});
  if (!prefix.finished()) open_block(prefix);
}

std::vector<Event> TextbookJacobiDecoder::take_events() {
  return std::exchange(events_, {});
}

}  // namespace engine
