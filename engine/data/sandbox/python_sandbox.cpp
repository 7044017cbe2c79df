#include "engine/data/sandbox/python_sandbox.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "engine/base/types.h"
#include "engine/data/sandbox/bubblewrap.h"
#include "engine/data/sandbox/child_process.h"
#include "engine/data/sandbox/seccomp_filter.h"
#include "engine/data/text.h"

namespace engine {

extern const char* const kPythonDriver;  // the text of python_driver.py (python_scripts.cpp.in)

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kStartLimit = std::chrono::seconds(30);
constexpr auto kEndLimit = std::chrono::seconds(5);
constexpr milliseconds kSlack(10'000);          // waits this much longer than a program's limit
constexpr std::size_t kMaxProgram = 16u << 20;  // bytes
constexpr std::size_t kMaxReply = 4096;

int left_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<milliseconds::rep>(0, left.count()));
}

bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd one = {fd, events, 0};
    const int n = poll(&one, 1, left_until(deadline));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool send_all(int fd, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    if (!wait_for(fd, POLLOUT, deadline)) return false;
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::optional<std::string> receive_all(int fd, std::size_t size, Clock::time_point deadline) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    if (!wait_for(fd, POLLIN, deadline)) return {};
    const ssize_t n = recv(fd, bytes.data() + done, size - done, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return {};
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return bytes;
}

std::string length_of(const std::string& text) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(text.size() >> shift & 0xff);
  return bytes;
}

// Receives a letter and a reason (python_driver.py).
std::optional<std::string> receive_reply(int fd, Clock::time_point deadline) {
  const auto length = receive_all(fd, 4, deadline);
  if (!length) return {};
  std::size_t size = 0;
  for (int i = 3; i >= 0; i--)
    size = size << 8 | static_cast<unsigned char>((*length)[static_cast<std::size_t>(i)]);
  if (size == 0 || size > kMaxReply) return {};
  return receive_all(fd, size, deadline);
}

std::string last_line(std::string_view text) {
  text = trimmed(text);
  const auto at = text.rfind('\n');
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

Descriptor file_in_memory(const std::string& bytes) {
  Descriptor file(memfd_create("seccomp", MFD_CLOEXEC));
  if (file.get() < 0 || write(file.get(), bytes.data(), bytes.size()) != std::ssize(bytes) ||
      lseek(file.get(), 0, SEEK_SET) != 0)
    throw Error(ErrorCode::Resources, "cannot create a file in memory (memfd_create)");
  return file;
}

// The bubblewrap command before the interpreter's own, and the resources it uses.
struct Wrapping {
  std::vector<std::string> command;
  Descriptor filter;
  std::string scratch;  // the folder that programs can write to; empty: none
};

Wrapping wrapped(const PythonPaths& python, const std::string& bwrap, const PythonLimits& limits) {
  Wrapping wrapping;
  const std::string filter = seccomp_filter();
  if (!filter.empty()) wrapping.filter = file_in_memory(filter);
  const BubblewrapOptions options{.bwrap = bwrap,
                                  .as_root = geteuid() == 0,
                                  .has_seccomp = !filter.empty(),
                                  .has_scratch = bubblewrap_limits_size(bwrap),
                                  .scratch_bytes = limits.scratch_bytes};
  wrapping.command = bubblewrap_command(python, options);
  if (options.has_scratch) wrapping.scratch = kScratch;
  return wrapping;
}

std::vector<std::string> driver_command(const PythonPaths& python,
                                        bool isolated,
                                        const std::string& scratch,
                                        const PythonLimits& limits) {
  return {python.program,
          "-s",
          "-S",
          "-B",
          "-c",
          kPythonDriver,
          isolated ? "isolated" : "plain",
          std::to_string(limits.cpu_seconds),
          std::to_string(limits.wall.count()),
          std::to_string(limits.memory_bytes),
          std::to_string(scratch.empty() ? 0 : limits.scratch_bytes),
          std::to_string(limits.error_bytes),
          scratch};
}

}  // namespace

// The running interpreter and its connections.
struct PythonSandbox::Driver {
  pid_t process = -1;  // bwrap's or the interpreter's
  Descriptor socket, errors;

  Driver(const std::vector<std::string>& command, int filter) {
    auto [ours, theirs] = make_socket_pair();
    auto [read_end, write_end] = make_pipe();
    // The hash seed makes the order of sets reproducible.
    process = start_process(command, {"PYTHONHASHSEED=0"},
                            {theirs.get(), write_end.get(), write_end.get(), filter});
    socket = std::move(ours);
    errors = std::move(read_end);
  }

  // Closing the socket ends the driver and the program it runs; bwrap ends after it.
  ~Driver() {
    socket.reset();
    if (process > 0) wait_for_end(process, kEndLimit);
  }

  bool runs() const {
    char byte;
    const ssize_t n = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EINTR);
  }

  // The last line of its standard error.
  std::string last_error_line() const {
    std::string text;
    const auto deadline = Clock::now() + kEndLimit;
    while (text.size() < kMaxReply && wait_for(errors.get(), POLLIN, deadline)) {
      char buffer[1024];
      const ssize_t n = read(errors.get(), buffer, sizeof buffer);
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return last_line(text);
  }
};

PythonSandbox::PythonSandbox(PythonIsolation isolation, PythonLimits limits)
    : isolation_(isolation), limits_(limits) {}

PythonSandbox::~PythonSandbox() = default;

std::string PythonSandbox::start() {
  if (driver_ && driver_->runs()) return {};
  driver_.reset();
  const auto python = python_paths();
  if (!python) return kNoPython;
  Wrapping wrapping;
  const bool isolated = isolation_ == PythonIsolation::Full;
  if (isolated) {
    const auto found = found_on_path("bwrap");
    if (found.empty()) return "bwrap is not on the search path";
    wrapping = wrapped(*python, found[0], limits_);
  }
  std::vector<std::string> command = wrapping.command;
  for (std::string& word : driver_command(*python, isolated, wrapping.scratch, limits_))
    command.push_back(std::move(word));
  auto driver = std::make_unique<Driver>(command, wrapping.filter.get());
  const auto reply = receive_reply(driver->socket.get(), Clock::now() + kStartLimit);
  if (!reply) {
    const std::string error = driver->last_error_line();
    return error.empty() ? command[0] + " ended without a message" : error;
  }
  if ((*reply)[0] != 'R') return reply->substr(1);
  driver_ = std::move(driver);
  return {};
}

PythonRun PythonSandbox::run_one(const std::string& program) {
  if (program.size() > kMaxProgram) return {true, false, "the program is longer than 16 MiB"};
  // Tries twice, because the driver may have ended after the previous program, or another process
  // may have killed it.
  for (int i = 0; i < 2; i++) {
    const std::string problem = start();
    if (!problem.empty()) return {false, false, problem};
    const auto deadline = Clock::now() + limits_.wall + kSlack;
    const int fd = driver_->socket.get();
    std::optional<std::string> reply;
    if (send_all(fd, length_of(program) + program, deadline)) reply = receive_reply(fd, deadline);
    if (reply) {
      const char letter = (*reply)[0];
      return {letter == 'P' || letter == 'F', letter == 'P', reply->substr(1)};
    }
    if (Clock::now() >= deadline) kill(driver_->process, SIGKILL);
    driver_.reset();
  }
  return {true, false, "the program ended the process that runs it"};
}

std::vector<PythonRun> PythonSandbox::run(std::span<const std::string> programs) {
  std::vector<PythonRun> runs;
  for (const std::string& program : programs) runs.push_back(run_one(program));
  return runs;
}

}  // namespace engine
