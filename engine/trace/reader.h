// Reads the JSON of a Chrome trace event by event, in constant memory, trusting nothing: nesting at
// most 64, strings at most 16 MB, unpacked size bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

namespace engine {

struct TraceValue {
  enum class Type : std::uint8_t { Null, Bool, Number, String, Array, Object } type = Type::Null;
  double number = 0;
  bool integer = false;  // written without fraction or exponent
  std::string text;      // of a string; of a number as it was written
};

/// One element of traceEvents.
struct RawTraceEvent {
  std::int64_t index = 0;
  bool is_object = false;
  std::map<std::string, TraceValue> fields;
  std::map<std::string, TraceValue> args;
  std::vector<std::string> duplicate_keys;
};

struct RawTrace {
  bool array_form = false;
  bool cut = false;                            // an array form that ended early, which viewers load
  bool escaped_surrogates = false;             // \ud83d: Perfetto gives up on the file
  bool good_beginning = false;                 // {" or [{" after blanks
  bool has_events = false;                     // traceEvents is there, or the array
  std::map<std::string, TraceValue> metadata;  // members of "metadata" that are no containers
  std::vector<std::map<std::string, TraceValue>> runs;  // likewise of each of its "runs"
  std::string error;  // why reading ended early; empty: it did not
};

/// @param on_event  called in the file's order
/// @param stop      asked every few KB, or empty
/// @throws Error(Cancelled)  once it says true
RawTrace read_trace(std::streambuf& from,
                    const std::function<void(RawTraceEvent&&)>& on_event,
                    const std::function<bool()>& stop = {});

/// A file's bytes, unpacked where its name ends in ".gz".
/// @throws Error(BadInput)  not a regular file, not gzip inside
/// @throws Error(Resources)  the system's reason, or more than `max_bytes`
std::unique_ptr<std::streambuf> open_trace(const std::string& path,
                                           std::uint64_t max_bytes = std::uint64_t{4} << 30);

}  // namespace engine
