#include "engine/data/sandbox/run_python.h"

#include <mutex>
#include <optional>

namespace engine {

namespace {

struct Shared {
  std::mutex mutex;
  bool plain_allowed = false;
  std::optional<std::string> problem;  // of isolation, once it was tried
  PythonSandbox isolated{PythonIsolation::Full};
  PythonSandbox plain{PythonIsolation::None};

  const std::string& why_not() {
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
  if (s.why_not().empty()) return s.isolated.run(std::span(&text, 1))[0];
  if (s.why_not() == kNoPython) return {false, false, kNoPython};
  if (s.plain_allowed) return s.plain.run(std::span(&text, 1))[0];
  return {false, false, "code is not run without isolation: " + s.why_not()};
}

void allow_code_without_isolation(bool allowed) {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  s.plain_allowed = allowed;
}

std::string isolation_problem() {
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  return s.why_not() == kNoPython ? std::string() : s.why_not();
}

}  // namespace engine
