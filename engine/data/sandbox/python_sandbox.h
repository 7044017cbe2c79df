// Runs untrusted Python programs, many in one start of the interpreter.
//   isolation   by bubblewrap: no network, no environment, no inherited descriptor. Programs see the
//               interpreter, its standard library and the libraries of both, read-only, and one empty
//               folder in memory that they can write to; it is removed with the sandbox. Process and user
//               namespaces of their own (nobody, if started by root), and a seccomp filter
//               (seccomp_filter.h)
//   limits      with and without isolation: time, memory, files and output; no second process or thread
//   result      comes from a process that the program cannot reach. A program passes if it reaches its
//               last line, whatever its exit code. A program could forge this by reading its caller's
//               frames, or with objects that compare equal to everything; it cannot leave the sandbox.
//   cost        on two shared cores at a load of 16: 0.6 s for the first start, 0.13 s for each further
//               one, 25 ms for a program, of which 6 ms are processor time
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace engine {

/// The result of one program.
struct PythonRun {
  bool available = false;  ///< the program ran, and no signal from outside ended it
  bool passed = false;     ///< its last line was reached
  std::string reason;      ///< why it did not pass: the last line of its error, or the limit
};

/// The limits of one program.
struct PythonLimits {
  int cpu_seconds = 1;
  /// Ends programs that sleep. Long enough for a busy machine.
  std::chrono::milliseconds wall{6000};
  std::int64_t memory_bytes = 512 << 20;
  std::int64_t scratch_bytes =
      16 << 20;                        ///< of all files; without isolation no file can be written
  std::int64_t error_bytes = 1 << 20;  ///< of standard error; standard output is discarded
};

/// How programs are separated from the machine.
enum class PythonIsolation {
  Full,  ///< by bubblewrap; programs do not run without it
  None,  ///< only limits: programs have the caller's rights
};

/// A Python interpreter that runs programs one after the other.
class PythonSandbox {
 public:
  /// Does not start the interpreter.
  explicit PythonSandbox(PythonIsolation isolation, PythonLimits limits = {});
  ~PythonSandbox();
  PythonSandbox(const PythonSandbox&) = delete;
  PythonSandbox& operator=(const PythonSandbox&) = delete;

  /// Starts the interpreter, unless it runs.
  /// @return  why that is impossible ("bwrap is not on the search path"); empty if it runs
  std::string start();

  /// Runs the programs one after the other, each in a fresh state of the interpreter and with an empty
  /// folder. Starts the interpreter if needed. Only one thread may call it at a time.
  /// @return  [programs.size()] results
  std::vector<PythonRun> run(std::span<const std::string> programs);

 private:
  struct Driver;
  PythonRun run_one(const std::string& program);

  PythonIsolation isolation_;
  PythonLimits limits_;
  std::unique_ptr<Driver> driver_;  // null: not started, or ended
};

/// The result of PythonSandbox::start() if there is no interpreter.
inline constexpr const char* kNoPython = "no python3 on this machine";

}  // namespace engine
