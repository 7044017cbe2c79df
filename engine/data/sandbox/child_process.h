// Starts a child process that inherits nothing: it gets only the given descriptors and environment,
// default signals and a session of its own.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engine {

/// Owns a file descriptor and closes it; -1 is none.
class Descriptor {
 public:
  /// Takes ownership of `fd`.
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  /// A moved-from Descriptor holds -1.
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  int get() const { return fd_; }  ///< the descriptor; this object keeps the ownership
  /// Closes the descriptor and takes ownership of another.
  void reset(int fd = -1);

 private:
  int fd_;
};

/// The descriptors that become 0, 1, 2 and 3 in the child; -1: none.
struct ChildDescriptors {
  int in = -1, out = -1, err = -1, extra = -1;
};

/// Starts a process.
/// @param command      absolute path of the program, then its arguments
/// @param environment  "NAME=value"
/// @return  its id; the caller has to wait for its end
/// @throws Error(Resources)  if no process can be started
pid_t start_process(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment,
                    const ChildDescriptors& descriptors);

/// A pipe. Children inherit no end unless start_process() passes it on.
/// @return  the ends to read and to write
/// @throws Error(Resources)  if the system has no descriptors left
std::pair<Descriptor, Descriptor> make_pipe();
/// A connected pair of sockets, with the same inheritance and errors as make_pipe().
std::pair<Descriptor, Descriptor> make_socket_pair();

/// Waits for the process to end, and kills it when the time is over.
/// @return  its status, as waitpid() gives it
int wait_for_end(pid_t process, std::chrono::milliseconds at_most);

/// Runs a program and returns its standard output, at most 1 MiB.
/// @return  nothing if the program fails, takes longer than `at_most`, or writes more
std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment,
                                     std::chrono::milliseconds at_most);

/// The executable files of that name in the folders of $PATH, in the order of the folders.
std::vector<std::string> found_on_path(const std::string& name);

/// The environment of this process, in the form that start_process() takes.
std::vector<std::string> own_environment();

}  // namespace engine
