// A trace on its way out of the window: written on a thread of its own, given up when the person
// asks; then nothing of it stays.
#pragma once

#include <atomic>
#include <future>
#include <string>

#include "engine/event/timeline/timeline.h"
#include "engine/trace/export.h"

namespace ui {

class Exporting {
 public:
  /// @param timeline  outlives this, and must not change before ended()
  Exporting(const engine::Timeline& timeline, std::string path, engine::TraceOptions options);
  /// Waits until it is written: who asked for it and closes the window wants the file.
  ~Exporting();
  Exporting(const Exporting&) = delete;
  Exporting& operator=(const Exporting&) = delete;

  const std::string& path() const { return path_; }
  void give_up() { given_up_ = true; }
  bool ended() const;
  /// Of what is to be written, 0 to 1; at 1 the file is read again.
  double fraction() const { return fraction_; }
  /// Once; waits for the end. @return in words what was written, or why nothing was
  std::string result() { return writer_.get(); }

 private:
  std::string path_;
  std::atomic<bool> given_up_ = false;
  std::atomic<double> fraction_ = 0;
  std::future<std::string> writer_;  // last: it uses all of the above
};

}  // namespace ui
