// Simulates SEED's recorded rounds in stages of fixed length. The program provides the simulator
// (engine/event/timeline/simulated_schedule.h).
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/simulated_schedule.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/time/schedule.h"
#include "ui/prepare/time/simulation_form.h"

namespace ui {

/// Returns the stages for the simulator, with times between kShortestStageMs and kLongestStageMs.
engine::SimulatedStages stages_of(const SimulationForm& form, const engine::Schedule& recorded);
/// Returns the mean recorded time to draft in a round, ms; 0 if none was recorded.
double recorded_draft_ms(const engine::Schedule& recorded);
/// Returns the mean recorded time to verify a round, ms; 0 if none was recorded.
double recorded_verify_ms(const engine::Schedule& recorded);

/// A simulated schedule.
struct Simulation {
  ScheduleLanes lanes;
  double in_turn = 0;  // time of the same rounds one after the other, ns
  double bound = 1;    // upper limit of the speed-up

  /// Returns the speed-up over one branch; 0 if nothing was simulated.
  double speedup() const { return lanes.end > 0 ? in_turn / lanes.end : 0; }
};
/// Returns the result of the simulator as rows.
Simulation simulation_of(engine::SimulatedSchedule simulated);

/// Returns the figures of a simulation: speed-up, its bound, utilisation of the target, queue.
std::vector<Figure> simulation_figures(const Simulation& simulation,
                                       const engine::SimulatedStages& stages);
/// Returns why a policy cannot be simulated from a recording; empty if it can.
std::string why_no_policy(const std::string& policy);

}  // namespace ui
