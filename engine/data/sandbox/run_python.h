// Runs the Python of completions, isolated (python_sandbox.h) or, where a person allows it, with
// limits alone.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/sandbox/python_sandbox.h"

namespace engine {

/// Runs the program in the sandbox that all callers of the process share. Where isolation cannot be
/// had it is not run, unless allow_code_without_isolation() was called before. Any thread.
PythonRun run_python(std::string_view program);

/// --run-code: programs that cannot be isolated run without isolation. For the whole process.
void allow_code_without_isolation(bool allowed = true);

/// Why run_python() cannot isolate programs, in a few words; empty if it can, and where there is no
/// python3, so that none will run. Starts the sandbox.
std::string isolation_problem();

}  // namespace engine
