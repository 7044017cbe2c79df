// --run-code: permits running programs in answers without isolation, if isolation is impossible.
#pragma once

#include <string>

#include "app/cli/commands.h"

namespace app {

/// Applies --run-code. Prints a notice if code will run without isolation, or if there is no
/// python3.
/// @return  why code will not run, and what to do; empty if it will
std::string apply_run_code(bool run_code);

/// Call before a command scores answers of `tasks` (empty: all).
/// @throws Error(Resources)  answers of `py` cannot be verified. For chat, where few answers are
///                           code, prints a notice instead
void require_code_for_tasks(const std::vector<std::string>& tasks, bool run_code);

/// Call before a training starts. Prints a notice if code cannot run and only the reported accuracy
/// depends on it.
/// @throws Error(Resources)  code cannot run, and the selection of training texts depends on it
void require_code_for_training(const TrainOptions& options);

}  // namespace app
