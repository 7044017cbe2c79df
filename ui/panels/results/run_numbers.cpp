#include "ui/panels/results/run_numbers.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include <imgui.h>

#include "engine/event/timeline/timeline.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/context.h"

namespace ui {
namespace {

struct NumbersOfRuns : PanelState {
  struct Entry {
    std::uint64_t version = 0;  // version of the timeline plus 1; 0: not computed yet
    StepRange range = 0;
    Numbers numbers;
    double at = 0;  // ImGui::GetTime() when they were computed
  };
  std::map<engine::RunId, Entry> whole, ranges;
  void document_changed() override { whole.clear(), ranges.clear(); }
  void units_changed() override { document_changed(); }
};

const Numbers& numbers_in(NumbersOfRuns::Entry& entry,
                          Context& context,
                          const engine::RunRecord& run,
                          const StepRange& range) {
  const std::uint64_t version = context.timeline.version() + 1;
  if (entry.version == version && entry.range == range) return entry.numbers;
  // While the engine is paused no further frame need be drawn, and a recording is read in a few frames.
  const bool decodes = context.source.empty() && context.live(run) && !context.timeline.held();
  const bool only_grows = entry.range.first == range.first && entry.range.end <= range.end;
  if (entry.version != 0 && decodes && only_grows && ImGui::GetTime() < entry.at + kLiveSeconds)
    return entry.numbers;
  entry = {version, range, numbers_of(context.timeline, run, context.times(run), range),
           ImGui::GetTime()};
  return entry.numbers;
}

}  // namespace

StepRange steps_for_numbers(Context& context, const engine::RunRecord& run) {
  const TimelineView& view = context.states.get<TimelineView>();
  const std::size_t n = context.n_steps(run);
  if (view.range.range0 == view.range.range1) return n;
  return steps_ending_in(view.clock, context.times(run), view.range.range0, view.range.range1,
                         context.wall_origin())
      .within(n);
}

const Numbers& run_numbers(Context& context, const engine::RunRecord& run) {
  return numbers_in(context.states.get<NumbersOfRuns>().whole[run.id()], context, run,
                    context.n_steps(run));
}

const Numbers& range_numbers(Context& context, const engine::RunRecord& run) {
  const StepRange range = steps_for_numbers(context, run);
  NumbersOfRuns::Entry& entry = context.states.get<NumbersOfRuns>().ranges[run.id()];
  numbers_in(entry, context, run, range);
  // Also of a part that begins with the first step; while the run is played, the steps so far are no part.
  const TimelineView& view = context.states.get<TimelineView>();
  if (view.range.range0 != view.range.range1 && range != StepRange(context.n_steps(run)))
    entry.numbers.speedup = speedup_of_part();
  return entry.numbers;
}

}  // namespace ui
