#include "ui/panels/step/shown_step.h"

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/describe.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/context.h"

namespace ui {

ShownStep shown_step(Context& context, const engine::RunRecord& run) {
  const std::size_t n = context.n_steps(run);
  const bool in_flight = context.live(run) && n < run.steps.size() && run.steps.head(n).has_drafted;
  ShownStep shown;
  const Place& locked = context.selection.locked;
  if (locked.run == run.id() && locked.step >= 0) {
    const std::size_t i = context.times(run).index_of(locked.step);
    if (i < n) {
      shown.step = run.steps[i];
      shown.selected = true;
      return shown;
    }
  }
  if (in_flight)
    shown.step = run.steps[n];
  else if (n > 0)
    shown.step = run.steps[n - 1];
  return shown;
}

std::string words_of(const ShownStep& shown) {
  return fmt::format("{}step {}{}", shown.selected ? "the selected " : "", shown.step->begun.step,
                     shown.selected ? " (Esc: back to the playhead)" : "");
}

std::string why_no_probabilities(const engine::RunRecord& run, const engine::StepRecord& step) {
  const auto* gone = run.dropped_at(engine::PayloadKind::Probabilities, step.begun.step);
  return gone ? engine::describe(*gone) : "";
}

}  // namespace ui
