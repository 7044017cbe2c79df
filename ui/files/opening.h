// A recording on its way into the window: read on a thread of its own, taken in slices, given up at
// once when the person asks. What was read until then stays.
#pragma once

#include <atomic>
#include <future>
#include <limits>
#include <string>
#include <vector>

#include "engine/event/queue.h"
#include "engine/event/recording/recording.h"

namespace ui {

class Opening {
 public:
  explicit Opening(std::string path);
  /// Gives up and waits until the reader noticed, a few thousand events at most.
  ~Opening();
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  const std::string& path() const { return path_; }
  /// Events read since the last call, oldest first.
  std::vector<engine::Event> take(std::size_t limit) { return events_.take(limit); }
  void give_up() { given_up_ = true; }
  /// Whether the reader has ended; take() may still have something.
  bool ended() const;
  /// Of the file's bytes, 0 to 1.
  double fraction() const { return fraction_; }
  /// Once, after ended(): what was found.
  /// @throws Error(BadInput, Resources)  as read_recording
  engine::RecordingReport report() { return reader_.get(); }

 private:
  std::string path_;
  // Nothing is let go on the way: the reader waits for the window instead.
  engine::EventQueue events_{std::numeric_limits<std::size_t>::max()};
  std::atomic<bool> given_up_ = false;
  std::atomic<double> fraction_ = 0;
  std::future<engine::RecordingReport> reader_;
};

}  // namespace ui
