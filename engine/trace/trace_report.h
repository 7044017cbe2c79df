// Options of a trace export, and the counts of what it wrote.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/output_file.h"
#include "engine/event/event.h"

namespace engine {

/// The part of a timeline to export, and how.
struct TraceOptions {
  std::optional<RunId> run;  // nullopt: all
  StepId first_step = 0;
  StepId last_step = 0x7FFF'FFFF;  // included
  bool prompt_text = false;        // false: the prompt's hash alone
  /// Above this the report warns: viewers give up at some millions.
  std::int64_t warn_above = 2'000'000;
  OutputFile::Write write;  // as OutputFile
  OutputFile::IfExists if_exists = OutputFile::IfExists::Replace;
  /// Called now and then, on the exporting thread, with the share done, 0 to 1; false cancels.
  std::function<bool(double)> progress;
};

/// True if the options select every step.
bool asks_for_all_steps(const TraceOptions& options);

/// Counts of the events written.
struct TraceReport {
  std::int64_t n_events = 0;  // all of the following
  std::int64_t n_metadata = 0, n_slices = 0, n_async = 0, n_instants = 0, n_counters = 0;
  std::int64_t n_flows = 0;     // starts and ends
  std::int64_t n_nudges = 0;    // starts moved by 0.001 to differ from the one before
  std::int64_t n_left_out = 0;  // slices that had no room inside the enclosing one
  std::uint64_t n_bytes = 0;    // of the file
  std::string path;             // the name that the file took
  std::vector<std::string> notices;
  /// The counts in one line.
  std::string summary() const;
};

}  // namespace engine
