// The trace of one run: its lanes of events and its metadata.
#pragma once

#include <functional>
#include <string>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/event_json.h"
#include "engine/trace/trace_report.h"

namespace engine {

/// Writes the lanes of one run, their names first.
/// @param pid       the process number of the run in the trace
/// @param report    receives the counts
/// @param progress  called with the fraction done, 0 to 1; may throw
/// @return  the run's entry in the trace's metadata, a JSON object
std::string put_run(const Timeline& timeline,
                    const RunRecord& run,
                    const TraceOptions& options,
                    int pid,
                    TraceReport& report,
                    const PutEvent& put,
                    const std::function<void(double)>& progress);

}  // namespace engine
