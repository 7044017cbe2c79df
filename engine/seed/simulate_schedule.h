// A recorded schedule run again by the simulator (rounds_simulator.h): the same texts, the same
// tokens a round, in stages of given length. To see what other times, more branches or another
// policy would have made of it.
//   differs  a verification takes one branch, as in SEED's Algorithm 1, whatever was recorded;
//            prompts take no time; texts are of equal value
#pragma once

#include "engine/event/timeline/simulated_schedule.h"

namespace engine {

/// Rounds that were not judged, of a run that was stopped, are left out. A text that began when all
/// before it were over waited for them, as a level of a search does, and does so here; of a
/// schedule of one branch that cannot be told, and all its texts are taken as one level.
/// @throws ContractError  if stages have no branch, no time or a policy there is not
SimulatedSchedule simulate_schedule(const Schedule& told, const SimulatedStages& stages);

}  // namespace engine
