// Chrome trace export, profile PD-1 (docs/contracts.md): one file that Perfetto, chrome://tracing,
// Tracy and speedscope read. One process a run, numbered lanes, times from the run's start.
//   lanes     1 phases, 2 target, 3 propose, 4 verify, 5 commit, 6 pool, 7 device, 8 blocks,
//             9 queue; of runs that took turns (SEED) a further process: schedule.h
//   slices    X on their lane, starts strictly increasing; blocks b/e; iterations and notices i
//   flows     "token": from the proposal of a step to the commit that kept some of it
//   counters  tokens_per_step, acceptance_rate, kv_bytes, <device>_busy_percent,
//             <device>_mem_bytes; absent where not known
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/output_file.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

struct TraceOptions {
  std::optional<RunId> run;  // nullopt: all
  StepId first_step = 0;
  StepId last_step = 0x7FFF'FFFF;  // included
  bool prompt_text = false;        // else its hash alone
  /// Above this the report warns: viewers give up at some millions.
  std::int64_t warn_above = 2'000'000;
  OutputFile::Write write;  // as OutputFile
  OutputFile::IfExists if_exists = OutputFile::IfExists::Replace;
  /// Told the share done, 0 to 1, now and then; false gives up. On the thread that exports.
  std::function<bool(double)> progress;
};

/// Whether the options leave out no step.
bool asks_for_all_steps(const TraceOptions& options);

/// What was written; after export_trace also what reading the file again found.
struct TraceReport {
  std::int64_t n_events = 0;  // all of the following
  std::int64_t n_metadata = 0, n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0;
  std::int64_t n_flows = 0;     // starts and ends
  std::int64_t n_nudges = 0;    // starts moved by 0.001 to differ from the one before
  std::int64_t n_left_out = 0;  // slices that had no room inside the one around them
  std::uint64_t n_bytes = 0;    // of the file
  std::string path;             // of the file: the name it took
  std::vector<std::string> notices;
  std::string summary() const;
};

/// Writes the trace as text, piece by piece.
/// @throws Error(Usage)  no such run, a reversed range of steps or one that holds none
/// @throws Error(Cancelled)  given up
TraceReport write_trace(const Timeline& timeline,
                        const TraceOptions& options,
                        const std::function<void(std::string_view)>& write);

/// Writes a file (compressed if its name ends in ".gz"), then reads it again and compares the
/// counts.
/// @throws Error(Usage)  as write_trace
/// @throws Error(Resources)  the disk refuses
/// @throws Error(Cancelled)  given up; no file is left
/// @throws ContractError  the self-check found a rule broken
TraceReport export_trace(const Timeline& timeline,
                         const std::string& path,
                         const TraceOptions& options = {});

}  // namespace engine
