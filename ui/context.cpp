#include "ui/context.h"

namespace ui {

const char* lens_name(Lens lens) {
  static constexpr const char* kNames[] = {"standing", "probability", "age",
                                           "cost",     "agreement",   "origin"};
  return kNames[static_cast<int>(lens)];
}

const RunTimes& Prepared::times(const engine::RunRecord& run) {
  RunTimes& t = times_[run.id()];
  extend(t, run);
  return t;
}

const Tally& Prepared::tally(const engine::RunRecord& run, std::size_t n_steps) {
  Tally& t = tallies_[run.id()];
  advance(t, run, n_steps);
  return t;
}

const PoolState& Prepared::pool(const engine::RunRecord& run, std::size_t n_steps) {
  PoolState& p = pools_[run.id()];
  advance(p, run, n_steps);
  return p;
}

const std::vector<TextCell>& Prepared::cells(const engine::Timeline& timeline,
                                             const engine::RunRecord& run,
                                             std::size_t n_steps,
                                             bool live) {
  Cells& c = cells_[run.id()];
  const std::uint64_t version = timeline.version() + 1;  // 0: never prepared
  if (c.version != version || c.n_steps != n_steps || c.live != live)
    c = {version, n_steps, live, text_cells(timeline, run, n_steps, live)};
  return c.cells;
}

void Prepared::clear() {
  *this = Prepared{};
}

std::vector<const engine::RunRecord*> Context::shown_runs() const {
  std::vector<const engine::RunRecord*> runs;
  if (compare && selection.race != 0) return timeline.race(selection.race);
  if (const engine::RunRecord* one = run()) runs.push_back(one);
  return runs;
}

std::size_t Context::n_steps(const engine::RunRecord& run) const {
  const RunTimes& times = prepared.times(run);
  return playhead.follows() ? times.steps.size() : steps_shown(times, playhead.at);
}

bool Context::live(const engine::RunRecord& run) const {
  return playhead.follows() && !run.over();
}

double Context::end() const {
  double end = 0;
  for (const engine::RunRecord* r : shown_runs())
    end = std::max(end, prepared.times(*r).end_compute());
  return end;
}

}  // namespace ui
