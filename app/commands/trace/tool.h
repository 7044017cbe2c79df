// The work of `decoscope trace info|validate|convert` and of `--describe`; the caller prints the answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/trace/csv.h"
#include "engine/trace/trace_report.h"

namespace app {

/// Called repeatedly while a file is read or written; true cancels the command. May be empty.
using StopRequested = std::function<bool()>;

/// The answer of a command, for people and for programs.
struct TraceAnswer {
  std::string text;    // lines for people, each with a line feed
  std::string json;    // one document for programs
  std::string remark;  // for standard error: whether a written file has the prompts; empty: none
  bool ok = true;      // false: the file can be read but breaks a rule (exit code 3)
};

/// Returns the weights' hash of the model with this name on this machine; nullopt: no such model.
using LocalWeights = std::function<std::optional<std::string>(const std::string& model)>;

/// Describes a recording (.pdrun) or an exported trace (.json or .pftrace, perhaps with .gz):
/// counts, runs, duration, losses, and models whose weights differ from those on this machine. For
/// people a table of the runs (of a long recording, of its decoders) and one of the kinds of event.
/// @param local_weights  empty: weights are not compared
/// @throws Error(BadInput)  neither a recording nor a trace
/// @throws Error(Resources)  the system's reason
/// @throws Error(Cancelled)  `stop` returned true
TraceAnswer trace_info(const std::string& path,
                       const LocalWeights& local_weights = {},
                       const StopRequested& stop = {});

/// Checks a recording (every frame whole, every event consistent) or a trace (every rule of
/// engine/trace/check.h). For people one line that it is valid, or one line for each fault.
/// @throws Error  as trace_info()
TraceAnswer trace_validate(const std::string& path, const StopRequested& stop = {});

/// Describes a recording in words, as `trace convert` writes them to a .txt file; the text ends with
/// a note for each loss.
/// @throws Error(Usage)  an exported trace
/// @throws Error  as trace_info()
TraceAnswer trace_describe(const std::string& path, const StopRequested& stop = {});

/// Options of `trace convert`.
struct ConvertOptions {
  engine::TraceOptions trace;
  engine::CsvOptions csv;
  bool used_tokens_only = false;  // of a recording: keep only the texts of tokens that occur
  std::optional<int> page_mb;     // limit of a page in megabytes; 0: none
  StopRequested stop;
};

/// Converts a recording; the ending of `to` selects the format: .json and .json.gz a Chrome trace,
/// .pftrace a Perfetto trace, .csv four tables (NAME-steps.csv, NAME-tokens.csv,
/// NAME-acceptance.csv, NAME-lanes.csv), .html a page that plays the recording, .md a report with
/// the notes on runs that the window keeps beside the recording, .txt a description, .pdrun a
/// recording of the whole frames. No file is replaced: if `to` exists, a numbered name is taken and
/// reported.
/// @throws Error(Usage)  another ending; an option of another format: --run or steps belong to a
///                       trace, the prompts to a trace, page or report, page_mb to a page,
///                       used_tokens_only to a recording, csv.for_spreadsheets to tables; a run or
///                       steps that are not in the recording
/// @throws Error  as trace_info(); then no file is left
TraceAnswer trace_convert(const std::string& from,
                          const std::string& to,
                          const ConvertOptions& options = {});

}  // namespace app
