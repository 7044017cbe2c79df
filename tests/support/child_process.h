// Child processes for tests that give up privileges, use up descriptors or kill a process.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace engine::test {

/// Runs `action` in a child process.
/// @return the text that `action` returned; nothing if the child crashed or took longer than 20 s
inline std::optional<std::string> run_in_child(const std::function<std::string()>& action) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const std::string text = action();
    const bool written =
        ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  return text;
}

/// Drops root privileges, so file modes apply to this (child) process. @return false if that failed
inline bool give_up_privileges() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) return true;
  return ::setresgid(kNobody, kNobody, kNobody) == 0 && ::setresuid(kNobody, kNobody, kNobody) == 0;
}

/// Lowers the limit on open files so that this (child) process can open no further file.
/// @return false if that failed
inline bool use_up_descriptors() {
  const int next = ::dup(0);
  if (next < 0) return false;
  ::close(next);
  const rlimit limit{static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/// A child process that works until it is killed.
class Victim {
 public:
  /// @param work  writes a byte to `ready` once it has started, and never returns
  explicit Victim(const std::function<void(int ready)>& work) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      work(ends[1]);
      ::_exit(1);
    }
    ::close(ends[1]);
    ready_ = ends[0];
  }
  ~Victim() { kill(); }
  Victim(Victim&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), ready_(std::exchange(other.ready_, -1)) {}
  Victim& operator=(Victim&&) = delete;

  pid_t pid() const { return pid_; }
  /// Blocks until the child has written its byte. @return false if it ended before
  bool wait_until_ready() const {
    char byte = 0;
    return ready_ >= 0 && ::read(ready_, &byte, 1) == 1;
  }
  /// Kills the child and waits for its end.
  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (ready_ >= 0) ::close(ready_);
    pid_ = ready_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int ready_ = -1;
};

}  // namespace engine::test
