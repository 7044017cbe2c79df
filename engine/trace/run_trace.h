// The trace of one run: its lanes of events and its metadata.
#pragma once

#include <functional>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/trace_report.h"
#include "engine/trace/trace_writer.h"

namespace engine {

/// Writes the lanes of one run, their names first.
/// @param pid       the process number of the run in the trace
/// @param report    receives the numbers of changed and omitted events
/// @param progress  called with the fraction done, 0 to 1; may throw
void write_run(const Timeline& timeline,
               const RunRecord& run,
               const TraceOptions& options,
               int pid,
               TraceReport& report,
               TraceWriter& writer,
               const std::function<void(double)>& progress);

}  // namespace engine
