// Opening a .pdrun recording: whatever is whole in it comes back as the events that were recorded,
// and the report says in numbers what did not. Layout in recording_format.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/byte_source.h"
#include "engine/event/event.h"
#include "engine/event/queue.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

/// What was found in a recording.
struct RecordingReport {
  std::uint64_t file_bytes = 0;
  std::uint64_t read_bytes = 0;        // so far
  std::uint64_t incomplete_bytes = 0;  // at the end, of a frame cut off
  std::uint64_t skipped_bytes = 0;     // of damaged frames
  std::int64_t n_events = 0;           // handed out
  std::int64_t n_damaged = 0;          // frames whose checksum or content is wrong
  std::int64_t n_unknown_kinds = 0;    // of a newer program
  std::int64_t n_unknown_fields = 0;
  std::uint32_t version = 0;
  std::string program_version;
  std::int64_t unix_seconds = 0;     // when it began
  bool closed = false;               // the footer is there
  std::int64_t n_events_stated = 0;  // by the footer
  bool footer_agrees = false;        // its number and checksum are those of the frames read
  std::string stopped;               // why reading ended early: a limit, cancelled; else empty
  /// One sentence for each thing a person should know; empty for a whole recording.
  std::vector<std::string> notices() const;
};

struct ReadLimits {
  std::int64_t max_events = 10'000'000;
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of the file; memory grows with what is read
};

/// Reads event by event; holds one frame and a read buffer.
class RecordingReader {
 public:
  /// @throws Error(BadInput)  not a recording (names what it looks like) or an unsupported version;
  ///                         Error(Resources)  the system refuses to read
  explicit RecordingReader(std::unique_ptr<ByteSource> source, const ReadLimits& limits = {});
  /// The next whole event, nullopt at the end.
  std::optional<Event> next();
  const RecordingReport& report() const { return report_; }

 private:
  struct Frame {
    std::string_view body;  // into buffer_, until the next read
    std::uint32_t crc = 0;
  };

  void read_header();
  std::string_view bytes_at(std::uint64_t offset, std::size_t n);  // fewer at the end
  std::optional<Frame> frame_at(std::uint64_t offset);
  /// Where the next whole frame begins after `offset`.
  std::optional<std::uint64_t> next_frame_after(std::uint64_t offset);
  void give_up_at(std::uint64_t offset);
  void take_footer(std::string_view body);
  bool within_limits();

  std::unique_ptr<ByteSource> source_;
  ReadLimits limits_;
  RecordingReport report_;
  std::string buffer_;
  std::uint64_t buffer_offset_ = 0;
  std::uint64_t pos_ = 0;
  std::uint64_t n_searched_ = 0;  // bytes checked while looking for frames after damage
  std::uint32_t crc_of_crcs_ = 0;
  bool done_ = false;
};

/// Told the fraction read, a few hundred times at most; false cancels.
using ReadProgress = std::function<bool(double fraction)>;

/// Hands every event of a recording to `into`, oldest first.
/// @throws Error  as RecordingReader
RecordingReport read_recording(const std::string& path,
                               EventSink& into,
                               const ReadLimits& limits = {},
                               const ReadProgress& progress = {});

/// The same into a timeline.
RecordingReport load_recording(const std::string& path,
                               Timeline& timeline,
                               const ReadLimits& limits = {},
                               const ReadProgress& progress = {});

}  // namespace engine
