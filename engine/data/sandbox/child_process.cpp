#include "engine/data/sandbox/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>

#include "engine/base/types.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = 1u << 20;
constexpr unsigned kFirstFree = 4;  // the child uses descriptors 0 to 3

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void close_from(unsigned first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0u, 0u) == 0) return;
#endif
  const long n = sysconf(_SC_OPEN_MAX);
  for (int fd = static_cast<int>(first); fd < n; fd++) close(fd);
}

// Runs in the child between fork and exec, where only system calls are safe.
[[noreturn]] void exec_command(char* const* command,
                               char* const* environment,
                               ChildDescriptors fds) {
  // The terminal sends Ctrl+C to its whole process group; the child must not get it.
  setsid();
  int* const all[] = {&fds.in, &fds.out, &fds.err, &fds.extra};
  for (int* fd : all)
    if (*fd >= 0) *fd = fcntl(*fd, F_DUPFD, 16);  // so that dup2() below overwrites none of them
  for (int i = 0; i < 4; i++)
    if (*all[i] >= 0 && dup2(*all[i], i) < 0) _exit(126);
  close_from(fds.extra >= 0 ? kFirstFree : kFirstFree - 1);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGXCPU, SIGCHLD})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(command[0], command, environment);
  _exit(126);
}

}  // namespace

void Descriptor::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

pid_t start_process(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment,
                    const ChildDescriptors& descriptors) {
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment);
  const pid_t child = fork();
  if (child < 0)
    throw Error(ErrorCode::Resources,
                command[0] + ": cannot start a process; too many processes or too little memory?");
  if (child == 0) exec_command(arguments.data(), variables.data(), descriptors);
  return child;
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::Resources, "cannot create a pipe; too many open files?");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::pair<Descriptor, Descriptor> make_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::Resources, "cannot create a pair of sockets; too many open files?");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

int wait_for_end(pid_t process, std::chrono::milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      break;
    }
    usleep(500);
  }
  return status;
}

std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     const std::vector<std::string>& environment,
                                     std::chrono::milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  auto [ours, theirs] = make_pipe();
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const pid_t child =
      start_process(command, environment, {null.get(), theirs.get(), null.get(), -1});
  theirs.reset();
  std::string text;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd fd = {ours.get(), POLLIN, 0};
    if (left.count() <= 0 || text.size() > kMaxOutput) break;
    if (poll(&fd, 1, static_cast<int>(left.count())) <= 0) continue;
    char buffer[4096];
    const ssize_t n = read(ours.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const int status = wait_for_end(child, left);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.size() > kMaxOutput) return {};
  return text;
}

std::vector<std::string> found_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::vector<std::string> found;
  for (const auto& folder : split_text(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = folder + "/" + name;
    if (folder.starts_with('/') && access(candidate.c_str(), X_OK) == 0) found.push_back(candidate);
  }
  return found;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; variable++) variables.push_back(*variable);
  return variables;
}

}  // namespace engine
