// Exports a file on a thread of its own. Cancelling leaves no file.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <string>

#include "ui/files/files.h"

namespace ui {

/// An export that is running or has ended.
class Exporting {
 public:
  /// Writes the file and reports its progress. @return a sentence that names the written file, or why nothing was written
  using Work = std::function<std::string(const ExportProgress& progress)>;

  /// Starts the export. What `work` uses outlives this object and must not change before ended().
  Exporting(std::string path, Work work);
  /// Waits until the file is written.
  ~Exporting();
  Exporting(const Exporting&) = delete;
  Exporting& operator=(const Exporting&) = delete;

  /// Returns the path of the file.
  const std::string& path() const { return path_; }
  /// Cancels the export.
  void give_up() { given_up_ = true; }
  /// Returns true if it has ended.
  bool ended() const;
  /// Returns the progress of writing, 0 to 1; at 1 the file is being checked.
  double fraction() const { return fraction_; }
  /// Waits for the end; call once. @return a sentence that names the written file, or why nothing was written
  std::string result() { return writer_.get(); }

 private:
  std::string path_;
  std::atomic<bool> given_up_ = false;
  std::atomic<double> fraction_ = 0;
  std::future<std::string> writer_;  // declared last: its thread uses the other members
};

}  // namespace ui
