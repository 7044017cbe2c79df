// Where the questions of `reason` come from.
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

/// The records of the file that --data names, from --start on; nothing where it names a folder or
/// is not given.
/// @throws Error(BadInput)  if it is not there
std::optional<std::vector<engine::Record>> records_of_file(const ReasonOptions& options);
/// The folder of the open sets: --data, else the environment's; empty for a generated task.
/// @throws Error(Usage)  if there is none
std::string data_dir_of(const ReasonOptions& options);
engine::QuestionRange range_of(const ReasonOptions& options);

}  // namespace app
