// SEED's schedule, reconstructed from the Queued, Dequeued and Waiting events of all runs: turns of
// the branches, forward passes of the target, idle times. The trace (engine/trace/schedule.h) and
// the window make their lanes from this schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// One round of a branch. Times are those of the events; -1: no event.
struct ScheduleTurn {
  RunId run = 0;
  StepId step = 0;
  int branch = 0;
  Nanoseconds may_draft = -1, drafts = -1, queued = -1, at_target = -1;
  // time at which it left the queue for the target, or at which its run ended
  Nanoseconds left_queue = -1;
  Nanoseconds forwarded = -1;  // end of its forward pass
  Nanoseconds ended = -1;      // end of its step
  int n_rows = 0, n_tokens = 0;
  int n_proposed = 0, n_accepted = 0;
  bool reads_prompt = false;  // the draft model first read the prompt
};

/// A forward pass of the target: the branches that left the queue at one moment.
struct ScheduleForward {
  Nanoseconds begin = 0, end = 0;
  Nanoseconds ended = 0;  // end of verification and commit
  std::size_t first = 0;  // index in Schedule::taken
  std::size_t n = 0;
};

/// The target was idle until a branch queued.
struct TargetIdle {
  Nanoseconds begin = 0, end = 0;
  RunId run = 0;
  int branch = 0;
};

/// The turns of all runs that took part in a schedule.
struct Schedule {
  Nanoseconds origin = 0;  // start of the first of these runs
  int n_branches = 0;
  std::vector<ScheduleTurn> turns;        // ordered by run, then by step
  std::vector<ScheduleForward> forwards;  // ordered by begin
  std::vector<std::uint32_t> taken;       // indices of turns, grouped by forward pass
  std::vector<TargetIdle> idle;

  /// True if no run took part.
  bool empty() const { return turns.empty(); }
  /// Indices of the turns of a forward pass.
  std::span<const std::uint32_t> lane_turns(const ScheduleForward& forward) const {
    return std::span(taken).subspan(forward.first, forward.n);
  }
};

/// True if any of the runs queued.
bool has_schedule(std::span<const RunRecord> runs);
/// Reconstructs the schedule of these runs.
Schedule schedule_of(std::span<const RunRecord> runs);
/// The same for runs that are not neighbours in memory, in the order of their beginning.
Schedule schedule_of(std::span<const RunRecord* const> runs);

/// Called for each interval between two changes of the queue, with the indices of the waiting
/// turns, oldest first.
using QueueVisitor =
    std::function<void(Nanoseconds begin, Nanoseconds end, std::span<const std::uint32_t> waiting)>;
/// Visits every interval in which the queue is not empty, in the order of time.
void for_each_queue_interval(const Schedule& schedule, const QueueVisitor& visit);

/// Time at which a step left the queue for the target; -1: its run never queued, or the event is
/// missing. Takes O(log n) of the run's n queueing events.
Nanoseconds time_at_target(const RunRecord& run, const StepHead& step);

}  // namespace engine
