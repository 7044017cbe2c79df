#include "ui/panels/results/run_numbers.h"

#include <cstdint>
#include <map>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/numbers.h"
#include "ui/shell/context.h"

namespace ui {
namespace {

struct NumbersOfRuns : PanelState {
  struct Entry {
    std::uint64_t version = 0;  // version of the timeline plus 1; 0: not computed yet
    std::size_t n_steps = 0;
    Numbers numbers;
  };
  std::map<engine::RunId, Entry> entries;
  void document_changed() override { entries.clear(); }
};

}  // namespace

const Numbers& run_numbers(Context& context, const engine::RunRecord& run) {
  NumbersOfRuns::Entry& entry = context.states.get<NumbersOfRuns>().entries[run.id()];
  const std::uint64_t version = context.timeline.version() + 1;
  const std::size_t n_steps = context.n_steps(run);
  if (entry.version != version || entry.n_steps != n_steps)
    entry = {version, n_steps, numbers_of(context.timeline, run, context.times(run), n_steps)};
  return entry.numbers;
}

}  // namespace ui
