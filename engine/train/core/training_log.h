// The log of a run, training.jsonl beside its checkpoint, one report per line (read by
// engine/event/recording/training_report.h).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "engine/event/recording/training_history.h"

namespace engine {

/// The log, open for appending.
class TrainingLog {
 public:
  static constexpr const char* kName = kTrainingLogName;

  /// Opens directory/training.jsonl. A resumed run keeps the lines up to its checkpoint and removes
  /// later and partial ones.
  /// @param after_step  the checkpoint's step; 0: starts a new log
  /// @throws Error(Resources)  if it cannot be written
  TrainingLog(const std::string& directory, std::int64_t after_step);

  /// Writes a line and flushes the file.
  /// @throws Error(Resources)  if the line cannot be written
  void write(const TrainingReport& report);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace engine
