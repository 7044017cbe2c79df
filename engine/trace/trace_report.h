// Options of a trace export, and its counts of events.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/output_file.h"
#include "engine/event/event.h"

namespace engine {

/// Formats of a trace: Chrome's JSON, and Perfetto's track events.
enum class TraceFormat : std::uint8_t { Json, Perfetto };

/// The format that a file's name selects: Perfetto for .pftrace and .pftrace.gz, Json for .json and .json.gz; nullopt for others.
std::optional<TraceFormat> trace_format_of(std::string_view path);

/// Options of the trace export.
struct TraceOptions {
  TraceFormat format =
      TraceFormat::Json;     // of write_trace(); export_trace() goes by the file's name
  std::optional<RunId> run;  // nullopt: all
  StepId first_step = 0;
  StepId last_step = 0x7FFF'FFFF;  // included
  bool prompt_text = false;        // include the prompt; false: its hash only
  /// Times are the run's own compute: all lanes of a race start at 0, and equal times mean equal
  /// compute. Waits and samples of the machine have no such time and are left out. False: wall time
  /// since the run's start.
  bool own_compute = false;
  /// Number of events above which the report has a notice: viewers fail at some millions.
  std::int64_t warn_above = 2'000'000;
  OutputFile::Write write;  // replaces the system's write(); may be empty
  OutputFile::IfExists if_exists = OutputFile::IfExists::Replace;
  /// Called repeatedly, on the exporting thread, with the fraction done, 0 to 1; false cancels.
  std::function<bool(double)> progress;
};

/// True if the options select every step.
bool selects_all_steps(const TraceOptions& options);

/// Counts of the events written.
struct TraceReport {
  std::int64_t n_events = 0;  // all of the following
  std::int64_t n_metadata = 0, n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0;
  std::int64_t n_flows = 0;     // starts and ends
  std::int64_t n_nudges = 0;    // starts moved by 0.001 us, to differ from the previous start
  std::int64_t n_left_out = 0;  // slices that did not fit into the enclosing one
  std::uint64_t n_bytes = 0;    // of the file
  std::string path;             // of the file written
  std::vector<std::string> notices;
  /// The counts in one line.
  std::string summary() const;
};

}  // namespace engine
