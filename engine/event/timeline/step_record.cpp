#include "engine/event/timeline/step_record.h"

#include <algorithm>

namespace engine {

StepHead head_of(const StepRecord& step) {
  const Verified& v = step.verified;
  const Committed& c = step.committed;
  const auto& tags = step.drafted.tree.tag;
  StepHead head{.begun = step.begun,
                .ended = step.ended,
                .n_proposed = v.n_proposed,
                .n_accepted = v.n_accepted,
                .n_rejected = v.n_rejected,
                .n_unused = v.n_unused,
                .n_rows = step.has_drafted ? step.drafted.tree.n_rows() : step.begun.n_rows,
                .first_pos = c.first_pos,
                .n_tokens = static_cast<int>(c.tokens.size()),
                .n_pool_added = step.pool ? static_cast<int>(step.pool->added.size()) : 0,
                .n_blocks = static_cast<int>(step.blocks.size()),
                .chosen = step.has_drafted && step.drafted.decision.is_chosen()
                              ? step.drafted.decision.size + 1
                              : 0,
                .has_drafted = step.has_drafted,
                .has_verified = step.has_verified,
                .has_committed = step.has_committed,
                .complete = step.complete,
                .has_pool = step.pool.has_value()};
  for (std::size_t i = 0; i < std::min(c.status.size(), c.origin.size()); ++i) {
    head.n_bonus += c.status[i] == TokenStatus::Bonus;
    const bool guessed = c.origin[i].kind == RowTag::Kind::Guess;
    head.n_pool_hits += guessed && c.status[i] == TokenStatus::Accepted;
  }
  head.tried_guesses =
      std::ranges::any_of(tags, [](RowTag tag) { return tag.kind == RowTag::Kind::Guess; });
  return head;
}

}  // namespace engine
