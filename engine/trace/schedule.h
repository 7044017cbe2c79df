// SEED's rounds in a trace: who drafted, who waited and what the target did, of all runs of the
// schedule together, as lanes of a process of their own. Read from Queued, Dequeued and Waiting.
//   target          its forwards, and "wait draft" where it had nothing to verify
//   draft branch B  a branch's turns: "wait draft", "draft branch B", "wait target"
//   verify          what became of each tree
//   queue           who waits for the target, from change to change, in the order they came
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/lane.h"

namespace engine {

struct ScheduleLane {
  std::string name;
  std::vector<TraceItem> items;
};

/// Times from the start of the first run that took part; empty if none did.
std::vector<ScheduleLane> schedule_lanes(std::span<const RunRecord> runs);

/// The run's own waits: "wait draft" and "wait target", times from its start.
std::vector<TraceItem> waits_of(const RunRecord& run);

}  // namespace engine
