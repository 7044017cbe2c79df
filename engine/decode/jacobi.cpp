#include "engine/decode/jacobi.h"

#include <algorithm>
#include <utility>

#include "engine/decode/options.h"
#include "engine/decode/verify/verify.h"

namespace engine {

JacobiDecoder::JacobiDecoder(const DecoderContext& context)
    : target_(context.target),
      limits_(context.limits),
      block_(int_option(context.options, "block")),
      refill_(text_option(context.options, "refill") == "slide" ? Refill::Slide : Refill::Block),
      filler_(text_option(context.options, "fill"), context.sampling.seed),
      counts_(refill_ == Refill::Block) {}

void JacobiDecoder::begin(const Sequence& prefix) {
  open_block(prefix);
}

/// Rows that can still give a token.
int JacobiDecoder::size_for(const Sequence& prefix) const {
  return std::min(block_, room_left(prefix, limits_, target_.max_seq_len()));
}

/// Adds fillers behind cur_ until it is as long as it may be.
void JacobiDecoder::fill(const Sequence& prefix) {
  const int first = static_cast<int>(prefix.tokens().size()) - 1;
  const int size = size_for(prefix);
  cur_.reserve(static_cast<std::size_t>(size));
  while (static_cast<int>(cur_.size()) < size) {
    cur_.push_back(filler_(prefix, first + static_cast<int>(cur_.size())));
  }
  cur_.resize(static_cast<std::size_t>(size));
}

void JacobiDecoder::open_block(const Sequence& prefix) {
  cur_.assign(1, prefix.last());
  fill(prefix);
  state_ = cur_;
  first_pos_ = static_cast<int>(prefix.tokens().size()) - 1;
  counts_.open(state_);
  events_.push_back(counts_.told(first_pos_, state_, 1, false));
}

TokenTree JacobiDecoder::propose(const Sequence& /*prefix*/) {
  TokenTree tree;
  const auto n_settled = state_.size() - cur_.size();
  for (std::size_t i = 0; i < cur_.size(); i++) {
    const auto slot = static_cast<std::int16_t>(n_settled + i);
    const RowTag tag = i == 0 ? RowTag{} : RowTag{RowTag::Kind::Block, slot, 0};
    tree.add(cur_[i], static_cast<int>(i) - 1, tag);
  }
  return tree;
}

// One iteration: refine every position at once, keep what can no longer change. refined_[i] was
// computed from cur_[0..i]. If all of those came back unchanged they are AR's, so the agreeing run
// and the one position after it are final: exactly what verify_exact_match() follows on a chain.
Decision JacobiDecoder::verify(const Sequence& /*prefix*/,
                               const TokenTree& tree,
                               const StepOutput& out) {
  refined_.clear();
  for (const kernels::Picked& picked : out.picked) refined_.push_back(picked.id);
  Decision decision = verify_exact_match(tree, out);
  n_kept_ = static_cast<int>(decision.path.size());
  return decision;
}

void JacobiDecoder::committed(const Sequence& prefix, const Decision& cut) {
  const auto n_rows = cur_.size();
  const auto n_settled = state_.size() - n_rows;
  const bool converged = static_cast<std::size_t>(n_kept_) == n_rows;
  // The block's new state: position i + 1 becomes what the row before it gave.
  for (std::size_t i = 0; i + 1 < n_rows; i++) state_[n_settled + i + 1] = refined_[i];
  counts_.refine(state_);
  const auto n_final = std::min(n_settled + cut.emitted.size() + 1, state_.size());
  events_.push_back(counts_.told(first_pos_, state_, static_cast<int>(n_final), converged));
  const bool at_eos = prefix.stop_reason() == StopReason::Eos;
  if (converged || at_eos) counts_.end_block(at_eos ? limits_.eos_ids : std::vector<TokenId>{});
  if (prefix.finished()) return;

  const auto n_kept = static_cast<std::ptrdiff_t>(n_kept_);
  if (refill_ == Refill::Slide) {
    // The window moves on by what was emitted and stays full.
    cur_.assign(refined_.begin() + n_kept - 1, refined_.end());
    fill(prefix);
    state_ = cur_;
    first_pos_ = static_cast<int>(prefix.tokens().size()) - 1;
  } else if (converged) {
    open_block(prefix);
  } else {
    // The tail shrinks; its first token is now certain.
    cur_.assign(refined_.begin() + n_kept - 1, refined_.end() - 1);
  }
}

std::vector<Event> JacobiDecoder::take_events() {
  return std::exchange(events_, {});
}

std::map<std::string, std::int64_t> JacobiDecoder::counts() const {
  return counts_.counts();
}

std::map<std::string, double> JacobiDecoder::figures() const {
  return counts_.figures();
}

}  // namespace engine
