// Writes a recording on a thread of its own. Cancelling leaves no file.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <string>

namespace engine {
class Timeline;
}

namespace ui {

/// A recording that is being written.
class Saving {
 public:
  /// Writes the events of a timeline, which must not change before ended().
  Saving(const engine::Timeline& timeline, std::string path);
  /// Copies the readable part of another recording.
  Saving(std::string source, std::string path);
  /// Waits until the file is written.
  ~Saving();
  Saving(const Saving&) = delete;
  Saving& operator=(const Saving&) = delete;

  /// Returns the requested path.
  const std::string& path() const { return path_; }
  /// Returns the path of the recording that is copied; empty if a timeline is written.
  const std::string& source() const { return source_; }
  /// Returns true if a timeline is being read and must not change.
  bool reads_timeline() const { return source_.empty(); }
  /// Cancels writing.
  void give_up() { given_up_ = true; }
  /// Returns true if it has ended.
  bool ended() const;
  /// Returns the progress, 0 to 1.
  double fraction() const { return fraction_; }
  /// Waits for the end; call once. @return the path of the file, which may have got a number
  /// @throws Error(Resources)  the file cannot be written, or the source cannot be read
  /// @throws Error(Cancelled)  it was cancelled
  std::string result() { return writer_.get(); }

 private:
  class Outlet;
  std::string write(const std::function<void(Outlet&)>& content);

  std::string source_, path_;
  std::atomic<bool> given_up_ = false;
  std::atomic<double> fraction_ = 0;
  std::future<std::string> writer_;  // declared last: its thread uses the other members
};

}  // namespace ui
