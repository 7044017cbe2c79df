// Events of a Chrome trace as JSON, one object each.
#pragma once

#include <functional>
#include <string>

#include "engine/trace/lane.h"
#include "engine/trace/trace_report.h"

namespace engine {

/// Takes the JSON of one event.
using PutEvent = std::function<void(std::string)>;

/// Adds an event to the counts of its kind.
void count_event(const TraceItem& item, TraceReport& report);

/// The JSON object of an event. Ids of "token" flows get the pid in their upper 32 bits, as a file's
/// flows share one space of ids.
std::string event_json(const TraceItem& item, int pid, int tid);

/// Puts the metadata events that name a lane and give its place among the lanes of its process.
void put_lane_name(int pid,
                   int tid,
                   int place,
                   const std::string& name,
                   TraceReport& report,
                   const PutEvent& put);

/// Puts the metadata events that name a process and order it by its pid.
void put_process_name(int pid, const std::string& title, TraceReport& report, const PutEvent& put);

}  // namespace engine
