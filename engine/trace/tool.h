// What `decoscope trace info|validate|convert` does; the command line only prints it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/trace/csv.h"
#include "engine/event/recording/recording.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"

namespace engine {

/// An answer for people and the same for programs.
struct TraceAnswer {
  std::string text;  // lines, the last one ended
  std::string json;  // one document
  bool ok = true;    // false: the file was read and breaks a rule (exit code 3)
};

/// The hash of the weights that a model of this name has here; nullopt: there is none.
using WeightsHere = std::function<std::optional<std::string>(const std::string& model)>;

/// Asked now and then while a file is read or written; true ends that. Or empty.
using StopAsked = std::function<bool()>;

/// What is in a recording (.pdrun) or an exported trace (.json, .json.gz): counts, runs, duration,
/// what was cut off, and whether the models recorded are those here. For people a table of the runs
/// (of many, of their decoders) and one of the kinds of event.
/// @param weights_here  or empty: nothing is compared
/// @throws Error(BadInput)  neither of these
/// @throws Error(Resources)  the system's reason
/// @throws Error(Cancelled)  `stop` said so
TraceAnswer trace_info(const std::string& path,
                       const WeightsHere& weights_here = {},
                       const StopAsked& stop = {});

/// A recording: every frame whole and every event consistent. A trace: every rule of check.h.
/// For people one line that it is valid, or one for each thing that is wrong.
/// @throws Error  as trace_info
TraceAnswer trace_validate(const std::string& path, const StopAsked& stop = {});

struct ConvertOptions {
  TraceOptions trace;
  CsvOptions csv;
  StopAsked stop;
};

/// From a recording, by the ending of `to`: .json and .json.gz a Chrome trace; .csv four tables
/// (NAME-steps.csv, NAME-tokens.csv, NAME-acceptance.csv, NAME-lanes.csv); .txt a description;
/// .pdrun a recording of what is whole in it. No file is replaced: where there is one, a numbered
/// name is taken and told.
/// @throws Error(Usage)  another ending; --run, steps or the prompt's text for another format; a
/// run or steps that are not there; else as trace_info. Where it throws no file is left of it.
TraceAnswer trace_convert(const std::string& from,
                          const std::string& to,
                          const ConvertOptions& options = {});

}  // namespace engine
