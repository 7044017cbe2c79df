// Starts a program that inherits nothing: only the descriptors and the environment that are given,
// default signals, a session of its own.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engine {

/// A file descriptor that closes itself; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  int get() const { return fd_; }
  void reset(int fd = -1);

 private:
  int fd_;
};

/// The child's descriptors 0, 1, 2 and, unless -1, 3.
struct ChildDescriptors {
  int in = -1, out = -1, err = -1, extra = -1;
};

/// @param command      absolute path, then the arguments
/// @param environment  "NAME=value"
/// @return  the process, which the caller waits for
/// @throws Error(Resources)  if no process can be started
pid_t start_process(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment,
                    const ChildDescriptors& descriptors);

/// @return  both ends, closed in children unless start_process() passes them on
/// @throws Error(Resources)  if there are none left
std::pair<Descriptor, Descriptor> make_pipe();
std::pair<Descriptor, Descriptor> make_socket_pair();

/// Waits for the process, and ends it by force when the time is over.
/// @return  as waitpid() has it
int wait_for_end(pid_t process, std::chrono::milliseconds at_most);

/// The program's standard output, at most 1 MiB of it.
/// @return  nothing if it fails, or takes longer
std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment,
                                     std::chrono::milliseconds at_most);

/// Every executable file of that name in the folders of $PATH, first found first.
std::vector<std::string> found_on_path(const std::string& name);

/// Our own environment, as start_process() takes it.
std::vector<std::string> own_environment();

}  // namespace engine
