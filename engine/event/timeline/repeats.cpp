#include "engine/event/timeline/repeats.h"

#include <algorithm>
#include <utility>

#include "engine/event/timeline/timeline.h"

namespace engine {
namespace {

using Runs = std::vector<const RunRecord*>;

bool ended_by_itself(const RunRecord& run) {
  return run.finished && !run.failed && run.finished->stop_reason != "stopped";
}

// Sets the load of the machine while any of the runs was going: means of the samples, weighted by their periods.
void add_load(RepeatFigures& figures, const Timeline& timeline, const Runs& runs) {
  double stolen = 0, stolen_ns = 0, load = 0, load_ns = 0;
  const auto is_inside = [&](const Sampled& sample) {
    return std::ranges::any_of(runs, [&](const RunRecord* run) {
      return run->started.t <= sample.t && sample.t - sample.period <= run->last_event;
    });
  };
  for (const Sampled& sample : timeline.samples()) {
    if (!is_inside(sample)) continue;
    const auto ns = static_cast<double>(sample.period);
    if (sample.stolen_percent >= 0) stolen += sample.stolen_percent * ns, stolen_ns += ns;
    if (sample.load_average >= 0) load += sample.load_average * ns, load_ns += ns;
  }
  if (stolen_ns > 0) figures.stolen_percent = stolen / stolen_ns;
  if (load_ns > 0) figures.load_average = load / load_ns;
}

}  // namespace

Runs repeats_of(const Timeline& timeline, const RunRecord& run) {
  const PlaceInSet& place = run.started.place;
  if (place.set == 0 || place.n_repeats == 1) return {&run};
  Runs runs;
  for (const RunRecord& other : timeline.runs()) {
    const PlaceInSet& its = other.started.place;
    if (its.set == place.set && its.prompt == place.prompt &&
        other.started.lane == run.started.lane)
      runs.push_back(&other);
  }
  return runs;
}

RepeatFigures repeat_figures(const Timeline& timeline, const RunRecord& run) {
  RepeatFigures figures{.n_all = run.started.place.n_repeats};
  std::vector<double> tokens_per_second, step_ms, tokens_per_step, speedup;
  const Runs all = repeats_of(timeline, run);
  for (const RunRecord* one : all) {
    if (!ended_by_itself(*one) || one->totals.n_steps == 0) continue;
    ++figures.n_done;
    tokens_per_second.push_back(one->tokens_per_second());
    step_ms.push_back(static_cast<double>(one->decode_compute()) * 1e-6 /
                      static_cast<double>(one->totals.n_steps));
    tokens_per_step.push_back(one->tokens_per_step());
    if (const auto ratio = timeline.speedup(*one)) speedup.push_back(*ratio);
  }
  figures.tokens_per_second = spread_of(std::move(tokens_per_second));
  figures.step_ms = spread_of(std::move(step_ms));
  figures.tokens_per_step = spread_of(std::move(tokens_per_step));
  figures.speedup = spread_of(std::move(speedup));
  add_load(figures, timeline, all);
  return figures;
}

}  // namespace engine
