#include "ui/prepare/run_traits.h"

#include "engine/event/timeline/timeline.h"

namespace ui {

RunTraits traits_of(const engine::RunRecord& run) {
  using Kind = engine::RowTag::Kind;
  const engine::RunTotals& totals = run.totals;
  RunTraits traits;
  traits.blocks = totals.n_blocks > 0 || totals.rows_of(Kind::Block) > 0;
  traits.window = totals.rows_of(Kind::Window) > 0;
  traits.guesses = totals.rows_of(Kind::Guess) > 0;
  traits.pool = totals.n_pools > 0;
  traits.drafts = totals.rows_of(Kind::Draft) > 0;
  traits.known = totals.rows_of(Kind::Current) > 0 || traits.has_trajectory() ||
                 traits.has_pool_or_guesses() || traits.drafts;
  return traits;
}

}  // namespace ui
