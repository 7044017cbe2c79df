#include "engine/data/run_python.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>

#include "engine/data/text.h"
#include "engine/types.h"

namespace engine {

namespace {

using Clock = std::chrono::steady_clock;
// One second of processor time; the wall limit is for programs that sleep, and leaves room for a
// busy machine.
constexpr rlim_t kCpuSeconds = 1;
constexpr auto kLimit = std::chrono::milliseconds(6000);
constexpr std::size_t kMaxError = 4096;

// The interpreter on the search path, looked up once; empty if there is none.
const std::string& python_path() {
  static const std::string path = [] {
    const char* search = std::getenv("PATH");
    for (const auto& folder : split_text(search == nullptr ? "/usr/bin:/bin" : search, ':')) {
      const std::string candidate = folder + "/python3";
      if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return std::string();
  }();
  return path;
}

// In the child between fork and exec: system calls only.
[[noreturn]] void become_python(const char* path, int in, int err) {
  // Ctrl+C is sent to the terminal's whole group and means us: the program under check is not
  // wrong for it. It ends with us instead.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = open("/dev/null", O_WRONLY);
  dup2(in, 0);
  dup2(null, 1);
  dup2(err, 2);
  const char* const arguments[] = {path, "-I", "-S", "-", nullptr};
  const char* const environment[] = {"PYTHONHASHSEED=0", nullptr};
  // Last, for they hold for this process too: a thread sanitizer has more than that mapped, and
  // notes what opens files.
  const rlimit cpu{kCpuSeconds, kCpuSeconds + 1};
  const rlimit memory{512u << 20, 512u << 20};
  const rlimit nothing{0, 0};
  setrlimit(RLIMIT_CPU, &cpu);
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_FSIZE, &nothing);
  setrlimit(RLIMIT_CORE, &nothing);
  execve(path, const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  _exit(126);
}

// A socket pair where we write: unlike a pipe it can be written to without SIGPIPE.
struct Pipe {
  int ends[2] = {-1, -1};
  explicit Pipe(bool socket) {
    const int status =
        socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC);
    if (status != 0) throw Error(ErrorCode::Resources, "python3: no pipe can be made");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
};

// Feeds the program and gathers its errors until both pipes are closed or the time is up.
std::string talk(Pipe& to, Pipe& from, std::string_view program, Clock::time_point deadline) {
  std::string errors;
  while (from.ends[0] >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return errors;
    pollfd fds[2] = {{from.ends[0], POLLIN, 0}, {to.ends[1], POLLOUT, 0}};
    if (poll(fds, to.ends[1] >= 0 ? 2 : 1, static_cast<int>(left.count())) < 0) continue;
    if (to.ends[1] >= 0 && fds[1].revents != 0) {
      const ssize_t n =
          send(to.ends[1], program.data(), program.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) program.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 || program.empty()) to.close_end(1);
    }
    if (fds[0].revents != 0) {
      char buffer[1024];
      const ssize_t n = read(from.ends[0], buffer, sizeof buffer);
      if (n <= 0) break;
      if (errors.size() < kMaxError) errors.append(buffer, static_cast<std::size_t>(n));
    }
  }
  return errors;
}

// What a person or a shutting-down machine sends; limits end a program by others.
bool is_a_request_to_stop(int signal_number) {
  return signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP;
}

std::string last_line(std::string_view text) {
  text = trimmed(text);
  const auto at = text.rfind('\n');
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

}  // namespace

PythonRun run_python(std::string_view program) {
  const std::string& path = python_path();
  if (path.empty()) return {false, false, "no python3 on this machine"};
  Pipe to(true);
  Pipe from(false);
  const pid_t child = fork();
  if (child < 0) throw Error(ErrorCode::Resources, "python3: no process can be started");
  if (child == 0) become_python(path.c_str(), to.ends[0], from.ends[1]);
  to.close_end(0);
  from.close_end(1);
  const auto deadline = Clock::now() + kLimit;
  const std::string errors = talk(to, from, program, deadline);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return {true, false, "longer than the time limit"};
    }
    usleep(500);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, true, {}};
  if (WIFSIGNALED(status) && is_a_request_to_stop(WTERMSIG(status)))
    return {false, false, "python3 was ended from outside"};
  if (WIFSIGNALED(status))
    return {true, false, "ended by signal " + std::to_string(WTERMSIG(status))};
  const std::string why = last_line(errors);
  return {true, false, why.empty() ? "exit code " + std::to_string(WEXITSTATUS(status)) : why};
}

}  // namespace engine
