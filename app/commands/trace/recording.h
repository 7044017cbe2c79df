// A whole recording in memory, for the commands that report on it or convert it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "engine/event/recording/recording.h"
#include "engine/event/timeline/timeline.h"

namespace app {

/// A recording's timeline, and the number of events of each kind, in all and for each decoder.
struct OpenedRecording {
  engine::Timeline timeline;
  engine::RecordingReport report;
  std::map<std::string, std::int64_t> kinds;
  std::map<std::string, std::map<std::string, std::int64_t>> kinds_by_decoder;
};

/// Reads a recording to its end; no payload is dropped.
/// @param stop  true cancels; may be empty
/// @throws Error(BadInput)  not a recording
/// @throws Error(Resources)  the system's reason
/// @throws Error(Cancelled)  `stop` returned true
OpenedRecording open_recording(const std::string& path, const std::function<bool()>& stop);

/// Pushes every event of a recording into `into`.
/// @throws Error  as open_recording()
engine::RecordingReport read_whole_recording(const std::string& path,
                                             engine::EventSink& into,
                                             const std::function<bool()>& stop);

/// Throws the error of a cancelled command.
/// @param left  what the command leaves behind, for the message: "no table was written"
/// @throws Error(Cancelled)  always
[[noreturn]] void throw_cancelled(const std::string& path, const char* left);

/// True for the endings of a trace: .json, .json.gz, .pftrace and .pftrace.gz.
bool is_trace_name(const std::string& path);

}  // namespace app
