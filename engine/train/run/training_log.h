// training.jsonl beside a run's checkpoint, one line a report (engine/event/recording/training_report.h says
// what is in it and reads it).
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "engine/event/recording/training_history.h"

namespace engine {

class TrainingLog {
 public:
  static constexpr const char* kName = kTrainingLogName;

  /// Opens directory/training.jsonl. A resumed run keeps the lines up to its checkpoint: what a run
  /// that was killed had told after that is told again, and half a line goes.
  /// @param after_step  of the checkpoint; 0 starts anew
  /// @throws Error(Resources)  if it cannot be written
  TrainingLog(const std::string& directory, std::int64_t after_step);

  /// Writes the line, there for readers when this returns.
  /// @throws Error(Resources)  if the disk refuses
  void write(const TrainingReport& report);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace engine
