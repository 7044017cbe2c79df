// Reads a .pdrun recording: returns the events of all whole frames and counts the damaged ones.
// Layout in recording_format.h.
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

/// The state of a recording after reading.
struct RecordingReport {
  std::uint64_t file_bytes = 0;
  std::uint64_t read_bytes = 0;        // read so far
  std::uint64_t incomplete_bytes = 0;  // bytes of a frame that is cut off at the end of the file
  std::uint64_t skipped_bytes = 0;     // of damaged frames
  std::int64_t n_events = 0;           // returned
  std::int64_t n_damaged = 0;          // frames with a wrong checksum or content
  std::int64_t n_unknown_kinds = 0;    // events of a newer program
  std::int64_t n_unknown_fields = 0;
  std::uint32_t version = 0;
  std::string program_version;
  std::int64_t unix_seconds = 0;     // when the recording began
  bool closed = false;               // the file has a footer
  std::int64_t n_events_stated = 0;  // the number that the footer states
  bool footer_agrees = false;        // number and checksum in the footer match the frames read
  std::string stopped;               // why reading ended early: a limit, cancelled; else empty
  /// One sentence for each fault; empty for a whole recording.
  std::vector<std::string> notices() const;
};

/// Limits of reading a recording.
struct ReadLimits {
  std::int64_t max_events = 10'000'000;
  std::uint64_t max_bytes = std::uint64_t{4}
                            << 30;  // largest file, because memory grows with the bytes read
};

/// Reads a recording event by event; holds one frame and a read buffer.
class RecordingReader {
 public:
  /// @throws Error(BadInput)   not a recording (names the format that it has) or an unsupported
  ///                           version
  /// @throws Error(Resources)  the system's reason
  explicit RecordingReader(std::unique_ptr<ByteSource> source, const ReadLimits& limits = {});
  /// The next whole event, nullopt at the end.
  std::optional<Event> next();
  /// The report so far.
  const RecordingReport& report() const { return report_; }

 private:
  struct Frame {
    std::string_view body;  // points into buffer_; valid until the next read
    std::uint32_t crc = 0;
  };

  void read_header();
  // fewer than n at the end of the file
  std::string_view bytes_at(std::uint64_t offset, std::size_t n);
  std::optional<Frame> frame_at(std::uint64_t offset);
  /// Offset of the next whole frame after `offset`.
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

/// Called with the fraction read, a few hundred times at most; false cancels.
using ReadProgress = std::function<bool(double fraction)>;

/// Pushes every event of a recording into `into`, oldest first.
/// @throws Error  as RecordingReader()
RecordingReport read_recording(const std::string& path,
                               EventSink& into,
                               const ReadLimits& limits = {},
                               const ReadProgress& progress = {});

/// Applies every event of a recording to a timeline.
/// @throws Error  as RecordingReader()
RecordingReport load_recording(const std::string& path,
                               Timeline& timeline,
                               const ReadLimits& limits = {},
                               const ReadProgress& progress = {});

}  // namespace engine
