// A recorded schedule run again in stages of given length: what the window asks for and gets. The
// simulator itself is engine/seed's (simulate_schedule.h), which the window may not know; the
// program hands it over as a function.
#pragma once

#include <functional>
#include <string>

#include "engine/event/timeline/schedule_turns.h"

namespace engine {

/// How a schedule's rounds are run again.
struct SimulatedStages {
  Nanoseconds draft = 1, verify = 1;  // of one round of a branch, 1 at least
  int n_branches = 1;
  int n_drafts = 0;  // that work at once; 0: one a branch, as SEED's paper has it
  std::string policy = "fcfs";
  bool operator==(const SimulatedStages&) const = default;
};

struct SimulatedSchedule {
  Schedule schedule;  // the turns told, of the same runs and steps, at simulated times from 0 on
  Nanoseconds end = 0;
  Nanoseconds in_turn = 0;  // the same rounds one after the other
  double bound = 1;         // what rounds of such stages can gain over that, at most
};

using ScheduleSimulator =
    std::function<SimulatedSchedule(const Schedule& told, const SimulatedStages& stages)>;

}  // namespace engine
