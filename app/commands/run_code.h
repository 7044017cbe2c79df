// --run-code: the rules for answers that are programs and cannot run in isolation.
#pragma once

#include <string>

#include "app/cli/commands.h"

namespace app {

/// Applies --run-code. Prints a notice if the code of answers will run without isolation, or if
/// there is no python3 to run it.
/// @return  why it will not run, with both ways on; empty if it will
std::string settle_code(bool run_code);

/// Before a command that scores answers of `tasks` (empty: all) does its first work.
/// @throws Error(Resources)  if answers of `py` cannot be checked; of chat alone, few of whose
///                           answers are code, it is a notice
void settle_code_of_tasks(const std::vector<std::string>& tasks, bool run_code);

/// Call before a training starts. Without isolation it prints a notice if only the reported
/// accuracy runs code.
/// @throws Error(Resources)  if the choice of training texts runs code
void settle_code_of_training(const TrainOptions& options);

}  // namespace app
