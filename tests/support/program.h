// The program under test as a process of its own: started, waited for, interrupted.
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
  int code = -1;  // exit code; -1: it was ended by a signal
  std::string out, err;
  double seconds = 0;  // from the last signal to the end
};

class Program {
 public:
  /// Starts the program in a process group of its own, stdout and stderr going to files.
  /// @param folder  where those are
  Program(const std::vector<std::string>& arguments, const std::string& folder);
  /// Ends the group if it still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Looks every few milliseconds until `come` or the program's end or the time is over.
  /// @return  whether it came while the program ran
  bool until(const std::function<bool()>& come, std::chrono::seconds at_most);
  /// Ctrl+C: to every process of the group, as a terminal does.
  void interrupt();
  /// Takes the processor from it, as a system does that sleeps, and gives it back.
  void suspend();
  void resume();
  /// Waits for the end, and ends it by force after `at_most`.
  ProgramEnd wait(std::chrono::seconds at_most);

  /// Bytes resident that are the program's alone: pages of mapped files (libraries, a driver's
  /// compiler) left out. 0 once it is over.
  long private_memory() const;
  /// Bytes resident of mapped files: libraries, and weights as they are looked at.
  long mapped_memory() const;
  /// Bytes it has read by system calls so far; 0 once it is over, or where that is not told.
  long bytes_read() const;
  std::string out() const;
  std::string err() const;

 private:
  bool over();
  /// Sum of the numbers with these names in a file of /proc/PID.
  long told(const std::string& file, const std::vector<std::string>& names) const;

  std::string folder_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool over_ = false;
  std::chrono::steady_clock::time_point signalled_;
};

/// Runs the program to its end with stderr on a terminal so many columns wide.
/// @return  what came there; none where no terminal can be made
std::optional<std::string> said_on_terminal(const std::vector<std::string>& arguments, int columns);
