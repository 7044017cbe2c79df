// Writes a .pdrun recording while the engine runs. push() encodes an event at once and a thread of
// the recorder writes it, so the engine never waits for a disk. If the process is killed, at most
// the events since the last flush are lost (100 ms or 64 KiB).
#pragma once

#include <sys/types.h>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/event/queue.h"

namespace engine {

/// Options of a recording.
struct RecorderOptions {
  /// A recording never replaces a file. NewName: takes "run-2.pdrun" for "run.pdrun", and so on.
  enum class IfExists : std::uint8_t { NewName, Refuse } if_exists = IfExists::NewName;
  std::size_t flush_bytes = 64u << 10;
  int flush_ms = 100;
  // if more is pending, payload is dropped and reported
  std::size_t max_pending_payload_bytes = 64u << 20;
  std::size_t max_pending_bytes = 256u << 20;  // if more is pending, the recording fails
  /// A failed recording keeps its whole frames under partial_name(), or is removed.
  enum class IfFailed : std::uint8_t { KeepPart, Remove } if_failed = IfFailed::KeepPart;
  /// Writes like ::write; tests set one that fails.
  std::function<ssize_t(int fd, const void* bytes, std::size_t n)> write;
};

/// "dir/run.pdrun" -> "dir/run-partial.pdrun".
std::string partial_name(const std::string& path);

/// The recording of one file. After a failed write no file has the recording's name (see IfFailed).
class Recorder : public EventSink {
 public:
  /// @throws Error(Resources)  naming the file and the system's reason
  /// @throws Error(Usage)  the file exists (IfExists::Refuse), or the path is empty
  explicit Recorder(const std::string& path, RecorderOptions options = {});
  /// Calls close().
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Never throws because of a disk failure: after one, events are dropped, and trouble() gives the
  /// reason.
  void push(Event event) override;
  /// Writes pending events and the footer, syncs and closes the file. Later events are dropped.
  void close();
  /// True before close() and before a failure.
  bool recording() const;
  /// The path of the file; it may differ from the path given (IfExists::NewName).
  const std::string& path() const { return path_; }
  /// Bytes in the file.
  std::uint64_t n_bytes_written() const;
  /// Bytes encoded and not yet taken by the writer.
  std::size_t n_bytes_pending() const;
  /// The reason of a failure; returned once.
  std::optional<std::string> trouble();

 private:
  void frame(const Event& event);
  bool is_behind() const;  // too many bytes wait for the disk, so payload is dropped
  void write_loop();
  bool write_all(const std::string& bytes);  // on the writer's thread; false if a write failed
  void fail(const std::string& what, int error);
  void end_recording(const std::string& why);  // with the mutex held
  // renames or removes the partial file; returns a text that says which
  std::string set_aside() const;

  std::string path_;
  RecorderOptions options_;
  int fd_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable wanted_;
  std::string pending_;        // whole frames, not yet written
  std::string footer_;         // the last frame
  std::int64_t n_events_ = 0;  // framed
  std::uint32_t crc_of_crcs_ = 0;
  std::uint64_t n_written_ = 0;
  bool failed_ = false, closing_ = false, closed_ = false;
  std::optional<std::string> trouble_;
  std::thread writer_;
};

/// A sink that passes every event to the next sink and, while a recording is on, to a recorder. A
/// recording that begins later first gets the loaded models and the open runs, so it can be read
/// without earlier events. A failure of the recorder becomes a Notice; the run continues.
class RecordingTap : public EventSink {
 public:
  /// @param next  outlives the tap
  explicit RecordingTap(EventSink& next) : next_(next) {}
  void push(Event event) override;
  /// Begins a recording and ends the previous one; an empty path only ends it. A Notice gives the
  /// name of the new file.
  /// @throws Error  as Recorder(); the previous recording continues then
  void record_to(const std::string& path, const RecorderOptions& options = {});
  /// True while a recording is on.
  bool recording() const { return recorder_ && recorder_->recording(); }
  /// The path of the recording; empty if none is on.
  std::string path() const;

 private:
  void remember(const Event& event);
  void report_trouble();

  EventSink& next_;  // outlives the tap
  std::unique_ptr<Recorder> recorder_;
  std::map<std::uint32_t, Event> models_;
  std::map<RunId, Event> open_runs_;
};

}  // namespace engine
