// Runs a recorded schedule again in the simulator (rounds_simulator.h), with the same tokens per
// round and given stage durations. It shows the effect of other durations, more branches or another
// policy.
//   differs  each verification takes one branch, as in SEED's Algorithm 1, even if the recorded
//            ones took several; prompts take no time; all branches have equal value
#pragma once

#include <vector>

#include "engine/event/timeline/simulated_schedule.h"
#include "engine/seed/rounds_simulator.h"

namespace engine {

/// Simulates a recorded schedule. Leaves out the unverified round of a stopped run. If a run began
/// after all earlier ones had ended, it is assumed to be the first of a search's next level, and it
/// waits for them in the simulation too. With one branch every run begins so; then all runs count
/// as one level.
/// @throws ContractError  if `stages` has no branch, a duration of 0 or an unknown policy
SimulatedSchedule simulate_schedule(const Schedule& recorded, const SimulatedStages& stages);

/// The texts of a recorded schedule and the tokens of their rounds, in the levels that
/// simulate_schedule() finds.
std::vector<std::vector<ScriptedRequest>> scripted_levels(const Schedule& recorded);

}  // namespace engine
