// Trace export: Chrome's JSON, profile PD-1 (docs/contracts.md), for Perfetto, chrome://tracing,
// Tracy and speedscope, and Perfetto's own format. One process per run, numbered lanes, times from the run's start.
//   lanes     1 phases, 2 target, 3 propose, 4 verify, 5 commit, 6 pool, 7 device, 8 blocks,
//             9 queue; runs that share a target (SEED) add a process: schedule.h
//   slices    X on their lane, starts strictly increasing; blocks b/e; iterations and notices i
//             The slice `exchange` lies at the end of a forward shared by ranks; the slice
//             `wait ranks` lies at its beginning.
//   flows     "token": from a step's proposal to the commit, if tokens of the proposal were
//             accepted
//   counters  tokens_per_step, acceptance_rate, kv_bytes, <device>_busy_percent,
//             <device>_mem_bytes; of steps whose size was chosen: choice_size, choice_tokens,
//             choice_ms (expected, measured); of ranks: exchanged_bytes, rank_wait_ms; absent if
//             unknown
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/trace/trace_report.h"

namespace engine {

class Timeline;

/// Writes the trace in parts through `write`.
/// @throws Error(Usage)  no such run, or no step in the range
/// @throws Error(Cancelled)  options.progress returned false
TraceReport write_trace(const Timeline& timeline,
                        const TraceOptions& options,
                        const std::function<void(std::string_view)>& write);

/// Writes a file (compressed if its name ends in ".gz"), then reads it back and checks it.
/// @throws Error(Usage)  as write_trace()
/// @throws Error(Resources)  the file cannot be written
/// @throws Error(Cancelled)  options.progress returned false; no file remains
/// @throws ContractError  the file violates a rule
TraceReport export_trace(const Timeline& timeline,
                         const std::string& path,
                         const TraceOptions& options = {});

}  // namespace engine
