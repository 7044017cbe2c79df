#include "app/commands/reason/questions.h"

#include <filesystem>

#include <fmt/format.h>

#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "engine/base/input_file.h"
#include "engine/data/record.h"
#include "engine/reason/questions.h"
#include "kernels/error.h"

namespace app {

namespace fs = std::filesystem;

std::optional<std::vector<engine::Record>> records_of_file(const ReasonOptions& options) {
  std::error_code ignored;
  const bool is_input = engine::is_standard_input(options.data);
  if (!options.data.empty() && !is_input && !fs::exists(options.data, ignored))
    throw engine::Error(engine::ErrorCode::BadInput,
                        options.data + ": not found, expected a folder or a file of records");
  if (!is_input && (options.data.empty() || fs::is_directory(options.data, ignored)))
    return std::nullopt;
  const ReadingInput reading(options.data, "records in the format of `data generate`,");
  return engine::records_from(options.data, options.start);
}

std::string data_dir_of(const ReasonOptions& options) {
  if (engine::is_generated(options.task)) return "";
  if (!options.data.empty()) return options.data;
  const std::string known = data_dir_of_environment();
  if (known.empty())
    throw engine::Error(
        engine::ErrorCode::Usage,
        fmt::format(
            "{} is an open data set: give the folder of the sets with --data or $DECOSCOPE_DATA",
            options.task));
  return known;
}

engine::QuestionRange range_of(const ReasonOptions& options) {
  return {.split = engine::split_from_name(options.split),
          .level = options.level,
          .start = options.start,
          .count = options.count};
}

}  // namespace app
