// Writing a .pdrun recording while the engine runs. Events are turned into bytes at once and
// written by a thread of the recorder's own: the engine never waits for a disk. What is lost by a
// kill is at most what came since the last flush, 100 ms or 64 KiB.
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

struct RecorderOptions {
  /// A recording never replaces a file. NewName: "run.pdrun" becomes "run-2.pdrun" and so on.
  enum class IfExists : std::uint8_t { NewName, Refuse } if_exists = IfExists::NewName;
  std::size_t flush_bytes = 64u << 10;
  int flush_ms = 100;
  std::size_t max_pending_payload_bytes = 64u << 20;  // beyond: payload is left out, and told
  std::size_t max_pending_bytes = 256u << 20;  // a disk further behind than this ends the recording
  /// A recording that fails keeps its whole frames under another name (partial_name), or is
  /// removed.
  enum class IfFailed : std::uint8_t { KeepPart, Remove } if_failed = IfFailed::KeepPart;
  /// Writes like ::write; a test puts a failing one in place.
  std::function<ssize_t(int fd, const void* bytes, std::size_t n)> write;
};

/// "dir/run.pdrun" -> "dir/run-partial.pdrun".
std::string partial_name(const std::string& path);

/// After a failed write no file has the recording's name: IfFailed says what is left of it.
class Recorder : public EventSink {
 public:
  /// @throws Error(Resources)  naming the file and the system's reason
  /// @throws Error(Usage)  it exists and shall not be taken, or the path is empty
  explicit Recorder(const std::string& path, RecorderOptions options = {});
  /// Closes.
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Never throws for a disk's sake: after a failure events are let go and trouble() says why.
  void push(Event event) override;
  /// Writes what is pending and the footer, syncs, and ends. Later pushes are let go.
  void close();
  bool recording() const;
  /// The name taken, perhaps not the one asked for.
  const std::string& path() const { return path_; }
  std::uint64_t n_bytes_written() const;
  /// Framed and not yet taken by the writer.
  std::size_t n_bytes_pending() const;
  /// Why recording went off; given once.
  std::optional<std::string> trouble();

 private:
  void frame(const Event& event);
  bool is_behind() const;  // the disk: payload has no room
  void write_loop();
  void write_all(const std::string& bytes);  // on the writer's thread
  void fail(const std::string& what, int error);
  void end_recording(const std::string& why);  // with the mutex held
  std::string set_aside() const;               // says in words where the part is

  std::string path_;
  RecorderOptions options_;
  int fd_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable wanted_;
  std::string pending_;        // whole frames, not yet written
  std::int64_t n_events_ = 0;  // framed
  std::uint32_t crc_of_crcs_ = 0;
  std::uint64_t n_written_ = 0;
  bool failed_ = false, closing_ = false, closed_ = false;
  std::optional<std::string> trouble_;
  std::thread writer_;
};

/// A sink in front of another: passes every event on and, while a recording is on, to a recorder
/// too. A recording that begins late is given the models loaded and the runs begun before, so that
/// it opens by itself. Trouble becomes a Notice; the run goes on.
class RecordingTap : public EventSink {
 public:
  explicit RecordingTap(EventSink& next) : next_(next) {}
  void push(Event event) override;
  /// Begins a recording (ends another before); an empty path only ends. Tells the name in a Notice.
  /// @throws Error  as Recorder; a recording already on goes on then
  void record_to(const std::string& path, const RecorderOptions& options = {});
  bool recording() const { return recorder_ && recorder_->recording(); }
  /// Of the recording that is on; empty if none is.
  std::string path() const;

 private:
  void remember(const Event& event);
  void tell_trouble();

  EventSink& next_;  // outlives the tap
  std::unique_ptr<Recorder> recorder_;
  std::map<std::uint32_t, Event> models_;
  std::map<RunId, Event> open_runs_;
};

}  // namespace engine
