// Selects the questions of `reason`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/commands.h"

namespace engine {
struct QuestionRange;
struct Record;
}  // namespace engine

namespace app {

/// The records of the file of --data, from --start on; nullopt if --data is a folder or not given.
/// @throws Error(BadInput)  the file does not exist
std::optional<std::vector<engine::Record>> records_of_file(const ReasonOptions& options);
/// The folder of the open data sets: --data, else $DECOSCOPE_DATA; empty for a generated task.
/// @throws Error(Usage)  neither is given
std::string data_dir_of(const ReasonOptions& options);
/// The range of questions that --start and --count select.
engine::QuestionRange range_of(const ReasonOptions& options);

}  // namespace app
