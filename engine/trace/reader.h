// Reads the JSON of an untrusted Chrome trace event by event, in constant memory: nesting at most
// 64, strings at most 16 MB, decompressed size bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

namespace engine {

/// A JSON value; for arrays and objects only the type.
struct TraceValue {
  /// JSON types.
  enum class Type : std::uint8_t { Null, Bool, Number, String, Array, Object } type = Type::Null;
  double number = 0;
  bool integer = false;  // written without fraction or exponent
  std::string text;      // a string, or a number as written in the file
};

/// One element of traceEvents.
struct RawTraceEvent {
  std::int64_t index = 0;
  bool is_object = false;
  std::map<std::string, TraceValue> fields;
  std::map<std::string, TraceValue> args;
  std::vector<std::string> duplicate_keys;
};

/// A trace without its events.
struct RawTrace {
  bool array_form = false;                     // an array of events, not an object
  bool cut = false;                            // the array has no end, which viewers accept
  bool escaped_surrogates = false;             // such as \ud83d: Perfetto rejects the file
  bool good_beginning = false;                 // begins with {" or [{" after white space
  bool has_events = false;                     // has traceEvents, or is an array
  std::map<std::string, TraceValue> metadata;  // members of "metadata" except containers
  // for each element of "runs" in "metadata": its members except containers
  std::vector<std::map<std::string, TraceValue>> runs;
  std::string error;  // why reading ended early; empty if it did not
};

/// Reads a trace.
/// @param on_event  called with each event, in file order
/// @param stop      checked every few KB; may be empty
/// @throws Error(Cancelled)  `stop` returned true
RawTrace read_trace(std::streambuf& from,
                    const std::function<void(RawTraceEvent&&)>& on_event,
                    const std::function<bool()>& stop = {});

/// Opens a file for reading, decompressed if its name ends in ".gz".
/// @throws Error(BadInput)  not a regular file, or not gzip data
/// @throws Error(Resources)  cannot be opened, or has more than `max_bytes`
std::unique_ptr<std::streambuf> open_trace(const std::string& path,
                                           std::uint64_t max_bytes = std::uint64_t{4} << 30);

}  // namespace engine
