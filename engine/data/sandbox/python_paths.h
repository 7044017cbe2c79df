// Finds the Python interpreter on the search path, and the files it needs to run with its standard
// library. Works for a distribution's python3, pyenv, conda and virtual environments.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engine {

/// The paths that the sandbox has to provide.
struct PythonPaths {
  std::string program;  ///< the interpreter itself, no link, shim or copy in a virtual environment
  std::vector<std::string> folders;  ///< folders of modules
  std::vector<std::string>
      hidden;  ///< folders in those with installed packages; programs do not see them
  /// Libraries and the loader: the path on this machine, and the path inside the sandbox.
  std::vector<std::pair<std::string, std::string>> files;
};

/// Runs the first working python3 of $PATH to find its files. Remembers the result for each value of
/// $PATH.
/// @return  nothing if there is no python3
std::optional<PythonPaths> python_paths();

}  // namespace engine
