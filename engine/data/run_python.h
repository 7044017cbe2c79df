// Runs a Python program in a process of its own, with limits.
#pragma once

#include <string>
#include <string_view>

namespace engine {

struct PythonRun {
  bool available = false;  ///< python3 was found, and nobody ended it from outside
  bool passed = false;     ///< it ended by itself with exit code 0
  std::string reason;      ///< why not: last line of its error, or the limit
};

/// CPython, isolated mode, 1 second of processor time, 512 MiB, no writing of files. The program is
/// read from a pipe.
PythonRun run_python(std::string_view program);

}  // namespace engine
