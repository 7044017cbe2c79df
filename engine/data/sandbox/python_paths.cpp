#include "engine/data/sandbox/python_paths.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>

#include "engine/data/sandbox/child_process.h"
#include "engine/data/text.h"

namespace engine {

extern const char* const kPythonProbe;  // the text of python_probe.py (python_scripts.cpp.in)

namespace {

constexpr auto kAtMost = std::chrono::seconds(30);

// Prints the path of the interpreter that a shim or a virtual environment runs. A shim may need the
// environment; the interpreter must not, because programs run without one.
constexpr const char* kPrintInterpreter =
    "import os, sys; "
    "print(os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable))";

PythonPaths paths_from(const std::string& lines) {
  PythonPaths paths;
  for (const std::string& line : split_text(lines, '\n')) {
    const auto words = split_text(line, '\t');
    if (words.size() < 2) continue;
    if (words[0] == "program") paths.program = words[1];
    if (words[0] == "folder") paths.folders.push_back(words[1]);
    if (words[0] == "hide") paths.hidden.push_back(words[1]);
    if (words[0] == "file") paths.files.emplace_back(words[1], words.back());
  }
  return paths;
}

std::optional<PythonPaths> find_python() {
  for (const std::string& candidate : found_on_path("python3")) {
    const auto printed =
        output_of({candidate, "-I", "-S", "-c", kPrintInterpreter}, own_environment(), kAtMost);
    if (!printed) continue;
    const std::string program(trimmed(*printed));
    const auto lines = output_of({program, "-I", "-S", "-c", kPythonProbe}, {}, kAtMost);
    if (!lines) continue;
    PythonPaths paths = paths_from(*lines);
    if (!paths.program.empty() && !paths.folders.empty()) return paths;
  }
  return {};
}

}  // namespace

std::optional<PythonPaths> python_paths() {
  static std::mutex mutex;
  static std::map<std::string, std::optional<PythonPaths>> known;
  const char* path = std::getenv("PATH");
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace(path == nullptr ? "" : path);
  if (is_new) entry->second = find_python();
  return entry->second;
}

}  // namespace engine
