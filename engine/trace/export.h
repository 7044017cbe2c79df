// Chrome trace export, profile PD-1 (docs/contracts.md): one file that Perfetto, chrome://tracing,
// Tracy and speedscope read. One process a run, numbered lanes, times from the run's start.
//   lanes     1 phases, 2 target, 3 propose, 4 verify, 5 commit, 6 pool, 7 device, 8 blocks,
//             9 queue; of runs that took turns (SEED) a further process: trace_schedule.h
//   slices    X on their lane, starts strictly increasing; blocks b/e; iterations and notices i
//   flows     "token": from the proposal of a step to the commit that kept some of it
//   counters  tokens_per_step, acceptance_rate, kv_bytes, <device>_busy_percent,
//             <device>_mem_bytes; absent where not known
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/trace_report.h"

namespace engine {

/// Writes the trace as text, piece by piece, through `write`.
/// @throws Error(Usage)  no such run, a reversed range of steps or one that holds none
/// @throws Error(Cancelled)  options.progress returned false
TraceReport write_trace(const Timeline& timeline,
                        const TraceOptions& options,
                        const std::function<void(std::string_view)>& write);

/// Writes a file (compressed if its name ends in ".gz"), then reads it again and compares the
/// counts.
/// @throws Error(Usage)  as write_trace
/// @throws Error(Resources)  the disk refuses
/// @throws Error(Cancelled)  options.progress returned false; no file is left
/// @throws ContractError  the self-check found a rule broken
TraceReport export_trace(const Timeline& timeline,
                         const std::string& path,
                         const TraceOptions& options = {});

}  // namespace engine
