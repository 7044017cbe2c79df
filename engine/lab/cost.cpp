#include "engine/lab/cost.h"

#include <algorithm>
#include <array>
#include <map>

#include "engine/event/timeline/timeline.h"
#include "engine/lab/acceptance.h"

namespace engine {
namespace {

double ms(Nanoseconds t) {
  return static_cast<double>(t) * 1e-6;
}

// A least-squares line.
struct Line {
  double at_0 = 0, slope = 0;
};

// Returns the line through the median forward times by number of rows, weighted by the number of steps; a slope below 0 becomes 0.
Line fitted(std::map<int, std::vector<double>>& times) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (auto& [rows, of] : times) {
    std::ranges::nth_element(of, of.begin() + std::ssize(of) / 2);
    const double weight = static_cast<double>(of.size()), time = of[of.size() / 2];
    n += weight, x += weight * rows, y += weight * time;
    xx += weight * rows * rows, xy += weight * rows * time;
  }
  const double spread = n * xx - x * x;
  const double slope = spread > 0 ? std::max(0.0, (n * xy - x * y) / spread) : 0;
  return {n > 0 ? (y - slope * x) / n : 0, slope};
}

RowCurve recorded_curve(const Timeline& timeline, const RunRecord& run) {
  std::map<int, std::vector<double>> times;
  for (const RunRecord& other : timeline.runs()) {
    if (other.started.model != run.started.model || !other.queueing.empty()) continue;
    for (std::size_t i = 0; i < other.steps.size(); ++i) {
      const StepHead step = other.steps.head(i);
      if (step.complete && step.n_rows > 0) times[step.n_rows].push_back(ms(step.ended.forward));
    }
  }
  if (times.size() < 2) return {};
  const auto [at_0, slope] = fitted(times);
  const int most = times.rbegin()->first;
  if (at_0 + slope <= 0) return {};
  return {{{1, 1}, {most, (at_0 + slope * most) / (at_0 + slope)}}};
}

}  // namespace

const char* name_of(RowCost cost) {
  static constexpr std::array<const char*, kRowCosts> kNames{"this machine", "an H100",
                                                             "rows are free"};
  return kNames[static_cast<std::size_t>(cost)];
}

double RowCurve::at(double rows) const {
  if (points.size() < 2 || rows <= points.front().first) return points.front().second;
  std::size_t i = 1;
  while (i + 1 < points.size() && points[i].first < rows) ++i;
  const auto [x0, y0] = points[i - 1];
  const auto [x1, y1] = points[i];
  return y0 + (y1 - y0) * (rows - x0) / (x1 - x0);
}

RowCurve row_curve(RowCost cost, const Timeline& timeline, const RunRecord& run) {
  if (cost == RowCost::Free) return {};
  if (cost == RowCost::Recorded) return recorded_curve(timeline, run);
  return {{{1, 1},
           {2, 1.0062},
           {4, 1.0087},
           {8, 1.0207},
           {16, 1.0986},
           {32, 1.1473},
           {64, 1.3908},
           {120, 1.8196}}};
}

StepCost step_cost_of(const RunRecord& run) {
  StepCost cost;
  for (const StepRecord& step : run.steps) {
    if (!step.complete) continue;
    ++cost.n_steps;
    cost.propose += ms(step.ended.propose);
    cost.forward += ms(step.ended.forward);
    cost.finish += ms(step.ended.verify + step.ended.commit);
    for (const DraftForward& forward : step.drafted.forwards)
      cost.draft += ms(forward.ended - forward.begun);
    cost.rows += std::max(step.begun.n_rows, step.drafted.tree.n_rows());
  }
  const double n = std::max(cost.n_steps, 1);
  cost.propose /= n, cost.draft /= n, cost.forward /= n, cost.finish /= n, cost.rows /= n;
  return cost;
}

SpeedAccount speed_account(const Timeline& timeline,
                           const RunRecord& run,
                           const Acceptance& acceptance) {
  const RunRecord* baseline = timeline.baseline_of(run);
  if (baseline == &run) return {.why = "This run is plain decoding, the baseline of the others."};
  if (!run.queueing.empty())
    return {.why =
                "The run shared the models with other sequences, so its own steps do not give a "
                "speed-up; What if simulates its schedule."};
  if (!baseline)
    return {.why =
                "No finished run of plain decoding is here for this prompt with the same settings. "
                "Run it, or a race with it."};
  if (std::string why = timeline.why_other_load(run); !why.empty()) return {.why = std::move(why)};
  const StepCost own = step_cost_of(run), plain = step_cost_of(*baseline);
  SpeedAccount account{.baseline = baseline->id(), .plain_ms = plain.total()};
  const double rows = own.forward - plain.forward, extra = own.rows - 1;
  const double accepted =
      acceptance.n_steps > 0 ? double(acceptance.accepted) / acceptance.n_steps : 0;
  // Not the waste (rows without a committed token): here the bonus token belongs to the row of a
  // plain step, not to one of the extra rows.
  const double unaccepted = extra > 0 ? std::clamp(1 - accepted / extra, 0.0, 1.0) : 0;
  const auto part = [&](const char* name, double time) {
    account.step_ms += time;
    account.parts.push_back({name, time, acceptance.expected * plain.total() / account.step_ms});
  };
  account.step_ms = plain.total();
  part("expected tokens alone", 0);
  part(own.draft > 0 ? "drafts" : "proposals", own.propose - plain.propose);
  part("rows of accepted tokens", rows * (1 - unaccepted));
  part("rows without accepted tokens", rows * unaccepted);
  part("verification, commit", own.finish - plain.finish);
  account.predicted = account.parts.back().speedup;
  account.measured = timeline.speedup(run).value_or(0);
  return account;
}

}  // namespace engine
