// Formats the events of a Chrome trace as JSON.
#pragma once

#include <functional>
#include <string>

#include "engine/trace/lane.h"
#include "engine/trace/trace_report.h"

namespace engine {

/// Receives the JSON object of one event.
using PutEvent = std::function<void(std::string)>;

/// Counts an event in the report.
void count_event(const TraceItem& item, TraceReport& report);

/// The JSON object of an event. Ids of "token" flows get the pid in their upper 32 bits, as flow
/// ids must be unique in a file.
std::string event_json(const TraceItem& item, int pid, int tid);

/// Writes the metadata events that name a lane and set its place in its process.
void put_lane_name(
    int pid, int tid, int place, const std::string& name, TraceReport& report, const PutEvent& put);

/// Writes the metadata events that name a process and order processes by pid.
void put_process_name(int pid, const std::string& title, TraceReport& report, const PutEvent& put);

}  // namespace engine
