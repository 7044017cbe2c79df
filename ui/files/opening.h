// Reads a recording on a thread of its own; the window takes its events in slices. Cancelling keeps the part that was read.
#pragma once

#include <atomic>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include "engine/event/queue.h"
#include "engine/event/recording/recording.h"

namespace ui {

/// A recording that is being read.
class Opening {
 public:
  /// Starts to read.
  explicit Opening(std::string path);
  /// Cancels and waits for the reader, which stops within a few thousand events.
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  /// Returns the path of the recording.
  const std::string& path() const { return path_; }
  /// Returns the events read since the last call, oldest first.
  std::vector<engine::Event> take(std::size_t limit) { return events_.take(limit); }
  /// Cancels reading.
  void give_up() { given_up_ = true; }
  /// Returns true if the reader has ended; take() may still return events.
  bool ended() const;
  /// Returns the share of the file's bytes read, 0 to 1.
  double fraction() const { return fraction_; }
  /// Returns the report on the recording; call once, after ended().
  /// @throws Error(BadInput, Resources)  as read_recording
  engine::RecordingReport report() { return reader_.get(); }

 private:
  std::string path_;
  // The queue drops nothing: the reader waits for the window instead.
  engine::EventQueue events_{std::numeric_limits<std::size_t>::max()};
  std::atomic<bool> given_up_ = false;
  std::atomic<double> fraction_ = 0;
  std::future<engine::RecordingReport> reader_;
};

}  // namespace ui
