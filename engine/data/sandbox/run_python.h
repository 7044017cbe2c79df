// Runs the Python code of completions: isolated (python_sandbox.h) or, if the user allows it, only with
// limits.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/sandbox/python_sandbox.h"

namespace engine {

/// Runs a program in the sandbox that all callers share. One start of the interpreter serves all
/// programs. If isolation is impossible, the program does not run (PythonRun::available is false), unless
/// allow_code_without_isolation() was called before. Any thread may call it.
PythonRun run_python(std::string_view program);

/// For --run-code: if isolation is impossible, run_python() runs programs without it, in the whole
/// process.
void allow_code_without_isolation(bool allowed = true);

/// Why run_python() cannot isolate programs. Empty if it can, or if there is no python3, so that no
/// program runs at all. Starts the sandbox.
std::string isolation_problem();

}  // namespace engine
