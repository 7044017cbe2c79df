// The Python interpreter on the search path, and the files it needs to run with its standard
// library: for a distribution's own, pyenv, conda and virtual environments alike.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engine {

struct PythonPaths {
  std::string program;  ///< the interpreter itself: not a link, a shim or a venv's copy
  std::vector<std::string> folders;  ///< of modules
  std::vector<std::string> hidden;   ///< folders in those, of packages installed beside them
  /// Libraries and the loader: where a file is, and where it is to be found.
  std::vector<std::pair<std::string, std::string>> files;
};

/// Runs the first python3 that works to learn this; once for a value of $PATH.
/// @return  nothing if there is no python3
std::optional<PythonPaths> python_paths();

}  // namespace engine
