// A recording on its way out of the window: written on a thread of its own, given up when the
// person asks; then nothing of it stays.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <string>

#include "engine/event/queue.h"
#include "engine/event/timeline/timeline.h"

namespace ui {

class Saving {
 public:
  /// Tells a timeline again; it must not change before ended().
  Saving(const engine::Timeline& timeline, std::string path);
  /// What is whole in another recording.
  Saving(std::string source, std::string path);
  /// Waits until it is written: who asked for it and closes the window wants the file.
  ~Saving();
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;

  const std::string& path() const { return path_; }
  /// Whether a timeline is being told, so must not change.
  bool reads_timeline() const { return source_.empty(); }
  void give_up() { given_up_ = true; }
  bool ended() const;
  /// Of what is to be written, 0 to 1.
  double fraction() const { return fraction_; }
  /// Once; waits for the end. @return the name taken, perhaps not the one asked for
  /// @throws Error(Resources)  it cannot be written, or the source cannot be read any more;
  ///         Error(Cancelled)  it was given up
  std::string result() { return writer_.get(); }

 private:
  class Outlet;
  std::string write(const std::function<void(Outlet&)>& tell);

  std::string source_, path_;
  std::atomic<bool> given_up_ = false;
  std::atomic<double> fraction_ = 0;
  std::future<std::string> writer_;  // last: it uses all of the above
};

}  // namespace ui
