// SEED's recorded rounds run again in stages of fixed length: what a person set, and what comes of
// it. Nothing here is measured; the simulator is handed in (engine/event/timeline/simulated_schedule.h).
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/simulated_schedule.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/time/schedule.h"

namespace ui {

/// As a person set it. What was not set is as it was recorded, but for the two that begin as in
/// the paper: a draft model for each branch, and the policy.
struct SimulationForm {
  bool on = false;
  float draft_ms = -1, verify_ms = -1;  // of a round; below 0: as recorded, on average
  int n_branches = 0;                   // 0: as recorded
  bool one_draft = false;               // drafts for all branches; else each has one of its own
  std::string policy = "fcfs";
  bool operator==(const SimulationForm&) const = default;
};

constexpr float kShortestStageMs = 0.01f, kLongestStageMs = 10'000;

/// The stages asked for; times within the two above.
engine::SimulatedStages stages_of(const SimulationForm& form, const engine::Schedule& told);
/// How long the rounds told took on average, ms; 0: none of them was told.
double recorded_draft_ms(const engine::Schedule& told);
double recorded_verify_ms(const engine::Schedule& told);

struct Simulation {
  ScheduleLanes lanes;
  double in_turn = 0;  // ns, the same rounds one after the other
  double bound = 1;

  /// 0: nothing was simulated.
  double speedup() const { return lanes.end > 0 ? in_turn / lanes.end : 0; }
};
Simulation simulation_of(engine::SimulatedSchedule simulated);

/// Speed-up over one branch and its bound, how busy the target is, with their formulas.
std::vector<Figure> simulation_figures(const Simulation& simulation,
                                       const engine::SimulatedStages& stages);
/// Why a policy cannot be simulated from what was told; empty: it can.
std::string why_no_policy(const std::string& policy);

}  // namespace ui
