#include "engine/data/sandbox/run_python.h"

#include <mutex>
#include <optional>

namespace engine {

namespace {

// The sandboxes of this process.
struct Shared {
  std::mutex mutex;
  bool plain_allowed = false;  // --run-code
  std::optional<std::string>
      problem;  // why isolation is impossible, "" if it works; none: not tried
  PythonSandbox isolated{PythonIsolation::Full};
  PythonSandbox plain{PythonIsolation::None};

  const std::string& problem_of_isolation() {
    if (!problem) problem = isolated.start();
    return *problem;
  }
};

Shared& shared() {
  static Shared one;
  return one;
}

}  // namespace

PythonRun run_python(std::string_view program) {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  const std::string text(program);
  if (s.problem_of_isolation().empty()) return s.isolated.run(std::span(&text, 1))[0];
  if (s.problem_of_isolation() == kNoPython) return {false, false, kNoPython};
  if (s.plain_allowed) return s.plain.run(std::span(&text, 1))[0];
  return {false, false, "code does not run without isolation: " + s.problem_of_isolation()};
}

void allow_code_without_isolation(bool allowed) {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  s.plain_allowed = allowed;
}

std::string isolation_problem() {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  return s.problem_of_isolation() == kNoPython ? std::string() : s.problem_of_isolation();
}

}  // namespace engine
