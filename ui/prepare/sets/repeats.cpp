#include "ui/prepare/sets/repeats.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/status.h"

namespace ui {
namespace {

using Runs = std::vector<const engine::RunRecord*>;

bool ended_by_itself(const engine::RunRecord& run) {
  return run.finished && !run.failed && !was_stopped(run);
}

// Sets the load of the machine while any of the runs was going: means of the samples, weighted by their periods.
void add_load(RepeatFigures& figures, const engine::Timeline& timeline, const Runs& runs) {
  double stolen = 0, stolen_ns = 0, load = 0, load_ns = 0;
  const auto is_inside = [&](const engine::Sampled& sample) {
    return std::ranges::any_of(runs, [&](const engine::RunRecord* run) {
      return run->started.t <= sample.t && sample.t - sample.period <= run->last_event;
    });
  };
  for (const engine::Sampled& sample : timeline.samples()) {
    if (!is_inside(sample)) continue;
    const auto ns = static_cast<double>(sample.period);
    if (sample.stolen_percent >= 0) stolen += sample.stolen_percent * ns, stolen_ns += ns;
    if (sample.load_average >= 0) load += sample.load_average * ns, load_ns += ns;
  }
  if (stolen_ns > 0) figures.stolen_percent = stolen / stolen_ns;
  if (load_ns > 0) figures.load_average = load / load_ns;
}

}  // namespace

Runs repeats_of(const engine::Timeline& timeline, const engine::RunRecord& run) {
  const engine::PlaceInSet& place = run.started.place;
  if (place.set == 0 || place.n_repeats == 1) return {&run};
  Runs runs;
  for (const engine::RunRecord& other : timeline.runs()) {
    const engine::PlaceInSet& its = other.started.place;
    if (its.set == place.set && its.prompt == place.prompt &&
        other.started.lane == run.started.lane)
      runs.push_back(&other);
  }
  return runs;
}

RepeatFigures repeat_figures(const engine::Timeline& timeline, const engine::RunRecord& run) {
  RepeatFigures figures{.n_all = run.started.place.n_repeats};
  std::vector<double> tokens_per_second, step_ms, tokens_per_step, speedup;
  const Runs all = repeats_of(timeline, run);
  for (const engine::RunRecord* one : all) {
    if (!ended_by_itself(*one) || one->totals.n_steps == 0) continue;
    ++figures.n_done;
    tokens_per_second.push_back(one->tokens_per_second());
    step_ms.push_back(static_cast<double>(one->decode_compute()) * 1e-6 /
                      static_cast<double>(one->totals.n_steps));
    tokens_per_step.push_back(one->tokens_per_step());
    if (const auto ratio = timeline.speedup(*one)) speedup.push_back(*ratio);
  }
  figures.tokens_per_second = engine::spread_of(std::move(tokens_per_second));
  figures.step_ms = engine::spread_of(std::move(step_ms));
  figures.tokens_per_step = engine::spread_of(std::move(tokens_per_step));
  figures.speedup = engine::spread_of(std::move(speedup));
  add_load(figures, timeline, all);
  return figures;
}

std::size_t n_ended(const engine::Timeline& timeline) {
  return static_cast<std::size_t>(std::ranges::count_if(timeline.runs(), &engine::RunRecord::over));
}

std::string repeat_words(const RepeatFigures& figures) {
  return figures.n_done == figures.n_all
             ? fmt::format("median of {} (q1 to q3)", figures.n_all)
             : fmt::format("median of {}, {} requested (q1 to q3)", figures.n_done, figures.n_all);
}

std::string spread_words(const engine::Spread& spread) {
  if (spread.n == 0) return "-";
  return fmt::format("{} ({} to {})", short_number(spread.median), short_number(spread.q1),
                     short_number(spread.q3));
}

std::string load_words(const RepeatFigures& figures) {
  const std::string stolen = figures.stolen_percent >= 0
                                 ? fmt::format("{:.1f} %", figures.stolen_percent)
                                 : std::string("-");
  const std::string load =
      figures.load_average >= 0 ? fmt::format("{:.1f}", figures.load_average) : std::string("-");
  return fmt::format("stolen {}, load {}", stolen, load);
}

std::vector<Figure> figures_of(const RepeatFigures& figures) {
  const auto figure = [&](const char* label, const engine::Spread& spread, const char* formula) {
    return Figure{label, spread_words(spread),
                  std::string(formula) + ", of each repeat; quartiles interpolate linearly",
                  fmt::format("{} of {} repeats", spread.n, figures.n_all), Truth::Derived};
  };
  return {figure("tokens / s", figures.tokens_per_second,
                 "committed tokens / own compute of the steps"),
          figure("ms / step", figures.step_ms, "own compute of the steps / steps"),
          figure("tokens / step", figures.tokens_per_step, "committed tokens / steps"),
          figure("speedup", figures.speedup,
                 "own compute of plain decoding in the same repeat / own compute"),
          {"machine", load_words(figures),
           "share of processor time that the hypervisor gave to other machines, and load average "
           "over a minute; means over the repeats",
           "samples of the machine during the repeats", Truth::Measured}};
}

}  // namespace ui
