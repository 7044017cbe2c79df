#include "engine/train/core/training_log.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/output_file.h"
#include "engine/base/types.h"

namespace engine {
namespace {

// The lines of an existing log that a resumed run keeps; none if the log is damaged, since the run
// must not fail because of its log.
std::string lines_to_keep(const std::string& path, std::int64_t after_step) {
  std::error_code unknown;
  if (after_step == 0 || !std::filesystem::is_regular_file(path, unknown)) return {};
  std::string kept;
  try {
    for (const TrainingReport& report : read_training_reports(path))
      if (report.step <= after_step) kept += to_json_line(report) + "\n";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::BadInput) throw;
  }
  return kept;
}

}  // namespace

TrainingLog::TrainingLog(const std::string& directory, std::int64_t after_step)
    : path_(directory + "/" + kName) {
  write_whole_file(path_, lines_to_keep(path_, after_step));
  file_.open(path_, std::ios::app | std::ios::binary);
  if (!file_)
    throw Error(ErrorCode::Resources, path_ + ": cannot be written: " + std::strerror(errno));
}

void TrainingLog::write(const TrainingReport& report) {
  file_ << to_json_line(report) << '\n' << std::flush;
  if (!file_)
    throw Error(ErrorCode::Resources, path_ + ": cannot be written: " + std::strerror(errno));
}

}  // namespace engine
