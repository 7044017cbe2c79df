// The schedule of SEED's runs in a trace: drafting, waiting and the target's forwards of all runs
// together, as the lanes of a separate process. Derived from the events Queued, Dequeued and
// Waiting.
//   target          the target's forwards, and "wait draft" while it had nothing to verify
//   draft branch B  the branch's activities: "wait draft", "draft branch B", "wait target"
//   verify          the result of verifying each tree
//   queue           the branches that wait for the target, in order of arrival
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/lane.h"

namespace engine {

/// A lane of the schedule.
struct ScheduleLane {
  std::string name;
  std::vector<TraceItem> items;
};

/// The lanes of the schedule, times from the start of its first run; empty without such runs.
std::vector<ScheduleLane> schedule_lanes(std::span<const RunRecord> runs);

/// The waits of one run, "wait draft" and "wait target", times from its start.
std::vector<TraceItem> waits_of(const RunRecord& run);

}  // namespace engine
