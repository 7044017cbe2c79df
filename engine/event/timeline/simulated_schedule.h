// Input and output of the schedule simulator, which repeats a recorded schedule with stages of
// given length. The window does not link the simulator; the program passes it as a function.
#pragma once

#include <functional>
#include <string>

#include "engine/event/timeline/schedule_turns.h"

namespace engine {

/// The stages of a simulated schedule.
struct SimulatedStages {
  Nanoseconds draft = 1, verify = 1;  // length per round of a branch, at least 1
  int n_branches = 1;
  int n_drafts = 0;  // draft models that work at once; 0: one per branch, as in SEED's paper
  std::string policy = "fcfs";
  bool operator==(const SimulatedStages&) const = default;
};

/// The result of a simulation.
struct SimulatedSchedule {
  Schedule schedule;  // the recorded turns at simulated times, from 0
  Nanoseconds end = 0;
  Nanoseconds in_turn = 0;  // duration of the same rounds, run one after the other
  double bound = 1;         // upper bound of in_turn / end for these stages
};

/// Simulates a recorded schedule.
using ScheduleSimulator =
    std::function<SimulatedSchedule(const Schedule& recorded, const SimulatedStages& stages)>;

}  // namespace engine
