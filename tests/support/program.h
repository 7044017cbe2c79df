// Runs the program under test as a child process: starts it, waits for it, interrupts it.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Path of the program under test.
const char* program_path();

struct ProgramEnd {
  int code = -1;  // exit code; -1: a signal ended it
  std::string out, err;
  double seconds = 0;  // from the last signal to the end
};

class Program {
 public:
  /// Starts the program in its own process group.
  /// @param folder  receives program.out and program.err, the program's stdout and stderr
  Program(const std::vector<std::string>& arguments, const std::string& folder);
  /// Kills the group if it is still running.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Calls `come` every few milliseconds until it returns true, the program ends or the time is over.
  /// @return  true if `come` returned true while the program ran
  bool until(const std::function<bool()>& come, std::chrono::seconds at_most);
  /// Sends SIGINT to every process of the group, as Ctrl+C in a terminal does.
  void interrupt();
  /// Stops the process (SIGSTOP), as a suspended system does, and continues it.
  void suspend();
  void resume();
  /// Waits for the end; kills the program after `at_most`.
  ProgramEnd wait(std::chrono::seconds at_most);

  /// Resident bytes of the program's own memory, without mapped files (libraries, weights); 0 after
  /// its end.
  long private_memory() const;
  /// Resident bytes of mapped files: libraries, and the weights read so far.
  long mapped_memory() const;
  /// Bytes read by system calls so far; 0 after its end or if the system does not count them.
  long bytes_read() const;
  std::string out() const;
  std::string err() const;

 private:
  bool over();
  /// Sum of the numbers with these names in a file of /proc/PID.
  long sum_in_proc(const std::string& file, const std::vector<std::string>& names) const;

  std::string folder_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool over_ = false;
  std::chrono::steady_clock::time_point signalled_;
};

/// Runs the program with stderr on a terminal of the given width.
/// @return  the text written there; nothing if no terminal can be made
std::optional<std::string> run_on_terminal(const std::vector<std::string>& arguments, int columns);
