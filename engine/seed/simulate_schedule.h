// Runs a recorded schedule again in the simulator (rounds_simulator.h), with the same tokens per
// round and given stage durations: the effect of other times, more branches or another policy.
//   differs  a verification takes one branch, as in SEED's Algorithm 1, whatever was recorded;
//            prompts take no time; all branches have equal value
#pragma once

#include "engine/event/timeline/simulated_schedule.h"

namespace engine {

/// Simulates a recorded schedule. Leaves out the unverified round of a stopped run. A run that
/// began after all earlier ones had ended waited for them, as a level of a search does, and waits
/// here too. A schedule with one branch does not show this, so all its runs count as one level.
/// @throws ContractError  if `stages` has no branch, a duration of 0 or an unknown policy
SimulatedSchedule simulate_schedule(const Schedule& recorded, const SimulatedStages& stages);

}  // namespace engine
