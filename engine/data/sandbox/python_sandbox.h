// Runs untrusted Python programs, many in one start of the interpreter.
//   isolated    by bubblewrap: no network, no environment, no descriptor of ours; of the file
//               system the interpreter, its standard library and the libraries of both, read-only,
//               and an empty folder to write into, which lives in memory and goes with the sandbox;
//               a process namespace and a user of its own (of a root process: nobody); a seccomp
//               filter (seccomp_filter.h)
//   both        limits of time, memory, files and output; no further process or thread
//   verdict     from a process that a program cannot reach: it passes if its last line was reached,
//               whatever it exits with. A program that reads the frames it is called by could forge
//               that, as one could whose results equal everything; it cannot leave the sandbox.
//   cost        on two shared cores at a load of 16: 0.6 s the first time, 0.13 s a further start,
//               25 ms a program, 6 ms of it processor time
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace engine {

struct PythonRun {
  bool available = false;  ///< it ran, and no signal from outside ended it
  bool passed = false;     ///< its last line was reached
  std::string reason;      ///< why not: last line of its error, or the limit
};

/// Of one program.
struct PythonLimits {
  int cpu_seconds = 1;
  /// For programs that sleep; leaves room for a busy machine.
  std::chrono::milliseconds wall{6000};
  std::int64_t memory_bytes = 512 << 20;
  std::int64_t scratch_bytes = 16 << 20;  ///< of all files; only where isolated, else no files
  std::int64_t error_bytes = 1 << 20;     ///< of standard error; standard output goes nowhere
};

enum class PythonIsolation {
  Full,  ///< or the program is not run
  None,  ///< limits alone: the program has the caller's rights
};

class PythonSandbox {
 public:
  explicit PythonSandbox(PythonIsolation isolation, PythonLimits limits = {});
  ~PythonSandbox();
  PythonSandbox(const PythonSandbox&) = delete;
  PythonSandbox& operator=(const PythonSandbox&) = delete;

  /// Starts it, unless it runs.
  /// @return  why it cannot ("bwrap is not on the search path"); empty if it runs
  std::string start();

  /// Runs the programs in turn, each from a fresh state of the interpreter and with an empty
  /// folder. Of one caller at a time.
  /// @return  [programs.size()]
  std::vector<PythonRun> run(std::span<const std::string> programs);

 private:
  struct Driver;
  PythonRun run_one(const std::string& program);

  PythonIsolation isolation_;
  PythonLimits limits_;
  std::unique_ptr<Driver> driver_;  // null: not started, or ended
};

/// The reason that a sandbox gives if it finds no interpreter, isolated or not.
inline constexpr const char* kNoPython = "no python3 on this machine";

}  // namespace engine
