#include "ui/prepare/time/simulation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ui {
namespace {

using engine::Nanoseconds;

constexpr double kNsOfMs = 1e6;

class Average {
 public:
  void add(Nanoseconds from, Nanoseconds to) {
    if (from < 0 || to <= from) return;  // not recorded
    sum_ += static_cast<double>(to - from);
    ++n_;
  }
  double ms() const { return n_ > 0 ? sum_ / n_ / kNsOfMs : 0; }

 private:
  double sum_ = 0;
  int n_ = 0;
};

Nanoseconds stage(float set_ms, double recorded_ms) {
  const double ms = set_ms < 0 ? recorded_ms : static_cast<double>(set_ms);
  return std::llround(std::clamp<double>(ms, kShortestStageMs, kLongestStageMs) * kNsOfMs);
}

}  // namespace

// Leaves out the rounds in which the draft model also reads a prompt, if there are others; in a
// simulation, prompts take no time.
double recorded_draft_ms(const engine::Schedule& recorded) {
  Average with_prompt, others;
  for (const engine::ScheduleTurn& turn : recorded.turns)
    (turn.reads_prompt ? with_prompt : others).add(turn.drafts, turn.queued);
  return others.ms() > 0 ? others.ms() : with_prompt.ms();
}

double recorded_verify_ms(const engine::Schedule& recorded) {
  Average mean;
  for (const engine::ScheduleForward& forward : recorded.forwards)
    mean.add(forward.begin, forward.ended);
  return mean.ms();
}

engine::SimulatedStages stages_of(const SimulationForm& form, const engine::Schedule& recorded) {
  return {.draft = stage(form.draft_ms, recorded_draft_ms(recorded)),
          .verify = stage(form.verify_ms, recorded_verify_ms(recorded)),
          .n_branches = std::max(1, form.n_branches > 0 ? form.n_branches : recorded.n_branches),
          .n_drafts = form.n_drafts,
          .policy = form.policy};
}

Simulation simulation_of(engine::SimulatedSchedule simulated) {
  return {.lanes = schedule_lanes_of(std::move(simulated.schedule)),
          .in_turn = static_cast<double>(simulated.in_turn),
          .bound = simulated.bound};
}

std::vector<Figure> simulation_figures(const Simulation& simulation,
                                       const engine::SimulatedStages& stages) {
  const auto figure = [](const char* label, std::string value, const char* formula,
                         std::string numbers) {
    return Figure{.label = label,
                  .value = std::move(value),
                  .formula = formula,
                  .numbers = std::move(numbers),
                  .truth = Truth::Simulated};
  };
  const double end = simulation.lanes.end;
  const double draft = static_cast<double>(stages.draft),
               verify = static_cast<double>(stages.verify);
  const bool any = end > 0;
  const bool one_each = stages.n_drafts == 0 || stages.n_drafts >= stages.n_branches;
  const ScheduleFigures& f = simulation.lanes.figures;
  return {
      figure("speed-up over 1 branch", any ? fmt::format("{:.2f}", simulation.speedup()) : "-",
             "time of the same rounds one after the other / simulated time",
             short_time(simulation.in_turn) + " / " + short_time(end)),
      figure("at most", fmt::format("{:.2f}", simulation.bound),
             one_each ? "min(n, (Td + Tv) / Tv): n branches, or the target never idle"
                      : "(Td + Tv) / max((Td + Tv) / n, Tv, Td / d): n branches, the target never "
                        "idle, or the d draft models never idle",
             fmt::format("n {}, {}Td {}, Tv {}", stages.n_branches,
                         one_each ? "" : fmt::format("d {}, ", stages.n_drafts), short_time(draft),
                         short_time(verify))),
      figure("target busy", any ? percent(f.target / end) : "-",
             "simulated time of verifications / simulated time",
             short_time(f.target) + " / " + short_time(end)),
      figure("queue",
             any ? fmt::format("{:.2f}, at most {}", f.mean_queue(), f.longest_queue) : "-",
             "mean: time that branches waited for the target / time in which any branch was active",
             short_time(f.waits_for_target) + " / " + short_time(f.under_way)),
  };
}

std::string why_no_policy(const std::string& policy) {
  return policy == "priority"
             ? "A recording does not contain the values of the states that sequences continue."
             : "";
}

}  // namespace ui
