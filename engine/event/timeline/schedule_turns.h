// SEED's rounds as Queued, Dequeued and Waiting tell them, of all runs together: the turns of the
// branches, what the target took, who stood in the queue. The lanes of a trace (trace/schedule.h)
// and of the window are made from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// One round of a branch. Times are the events'; -1: it was not told.
struct ScheduleTurn {
  RunId run = 0;
  StepId step = 0;
  int branch = 0;
  Nanoseconds may_draft = -1, drafts = -1, queued = -1, at_target = -1;
  Nanoseconds left = -1;    // the queue: for the target, or because its run ended
  Nanoseconds judged = -1;  // its forward's end
  Nanoseconds ended = -1;   // its step's
  int n_rows = 0, n_tokens = 0;
  int n_proposed = 0, n_accepted = 0;
};

/// Branches that the target took at one moment, in one forward.
struct ScheduleForward {
  Nanoseconds begin = 0, end = 0;
  Nanoseconds ended = 0;  // verified and committed too
  std::size_t first = 0;  // of Schedule::taken
  std::size_t n = 0;
};

/// The target had nothing to verify until a branch came.
struct TargetIdle {
  Nanoseconds begin = 0, end = 0;
  RunId run = 0;
  int branch = 0;
};

struct Schedule {
  Nanoseconds origin = 0;  // the start of the first run that took part
  int n_branches = 0;
  std::vector<ScheduleTurn> turns;        // run by run, each in the order of its steps
  std::vector<ScheduleForward> forwards;  // by begin
  std::vector<std::uint32_t> taken;       // indices of turns, forward by forward
  std::vector<TargetIdle> idle;

  bool empty() const { return turns.empty(); }
  std::span<const std::uint32_t> lane_turns(const ScheduleForward& forward) const {
    return std::span(taken).subspan(forward.first, forward.n);
  }
};

/// Whether any of them queued.
bool has_schedule(std::span<const RunRecord> runs);
Schedule schedule_of(std::span<const RunRecord> runs);

/// The queue between two changes, where somebody waits: indices of turns in the order they came.
using QueueTold =
    std::function<void(Nanoseconds begin, Nanoseconds end, std::span<const std::uint32_t> waiting)>;
void tell_queue(const Schedule& schedule, const QueueTold& told);

/// When a step left the queue for the target; -1: its run never queued, or it was not told.
/// Found among the run's n events of queueing in log n.
Nanoseconds time_at_target(const RunRecord& run, const StepHead& step);

}  // namespace engine
