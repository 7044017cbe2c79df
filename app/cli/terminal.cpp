#include "app/cli/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "engine/base/input_file.h"
#include "kernels/error.h"

namespace app {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<bool> ends_at_once{false};
std::atomic<bool> cpu_time_over{false};

constexpr int kResources = static_cast<int>(kernels::ErrorCode::Resources);
constexpr int kCancelled = static_cast<int>(kernels::ErrorCode::Cancelled);

void on_signal(int) {
  if (stop_requested.exchange(true) || ends_at_once.load()) _exit(kCancelled);
}

// Reacts only to the first of these signals, because the system repeats it every second.
void on_cpu_limit(int) {
  cpu_time_over = true;
  stop_requested = true;
  if (ends_at_once.load()) _exit(kResources);
}

// A handler that does nothing. SIG_IGN is not used, because a child process would inherit it.
void on_failed_write(int) {}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = handler == on_failed_write ? SA_RESTART : 0;
  sigaction(signal_number, &action, nullptr);
}

bool is_ignored(int signal_number) {
  struct sigaction action {};
  return sigaction(signal_number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Lowers the soft CPU limit if it equals the hard one, because the system kills the process at the
/// hard limit. The difference, a quarter of the limit and at most 30 s, is the time to save.
void warn_before_the_cpu_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return;
  constexpr rlim_t kMostSeconds = 30;
  const rlim_t margin = std::clamp<rlim_t>(limit.rlim_max / 4, 1, kMostSeconds);
  if (limit.rlim_max <= margin || limit.rlim_cur <= limit.rlim_max - margin) return;
  limit.rlim_cur = limit.rlim_max - margin;
  setrlimit(RLIMIT_CPU, &limit);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Columns of the terminal on stderr.
std::size_t columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

/// The first `n` characters of UTF-8 text.
std::string first_characters(std::string text, std::size_t n) {
  std::size_t at = 0;
  for (; at < text.size(); at++) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && n-- == 0) break;
  }
  text.resize(at);
  return text;
}

}  // namespace

void install_signal_handlers() {
  for (const int signal_number : {SIGINT, SIGTERM}) handle(signal_number, on_signal);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, on_signal);
  handle(SIGXCPU, on_cpu_limit);
  handle(SIGXFSZ, on_failed_write);
  std::signal(SIGPIPE, SIG_IGN);
  warn_before_the_cpu_limit();
}

void fill_closed_streams() {
  // Standard output is opened read-only, so that writes to it fail as if it were closed.
  const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", modes[fd]);
    if (opened >= 0 && opened != fd) {
      dup2(opened, fd);
      close(opened);
    }
  }
}

bool interrupted() {
  return stop_requested.load(std::memory_order_relaxed);
}

bool cpu_time_is_over() {
  return cpu_time_over.load(std::memory_order_relaxed);
}

void end_when_interrupted(bool on) {
  ends_at_once = on;
}

ReadingInput::ReadingInput(const std::string& path, std::string_view what) {
  end_when_interrupted(true);
  if (engine::is_standard_input(path) && isatty(STDIN_FILENO) == 1)
    print_error(fmt::format("note: reading {} from the terminal; Ctrl+D ends them", what));
}

std::string for_terminal(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); i++) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 =
        c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) {
      shown += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
    } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      shown += fmt::format("\\x{:02x}", c);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

void print_error(std::string_view message) {
  std::string line = for_terminal(message);
  for (char& c : line) c = c == '\n' ? ' ' : c;
  std::fprintf(stderr, "decoscope: %s\n", line.c_str());
}

void print_once(const std::vector<std::string>& notices) {
  static std::set<std::string> printed;
  for (const std::string& notice : notices)
    if (printed.insert(notice).second) print_error("note: " + notice);
}

void print(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) {
    if (errno == EPIPE) throw OutputClosed();
    throw kernels::Error(kernels::ErrorCode::Resources,
                         fmt::format("standard output: {}", std::strerror(errno)));
  }
}

void ProgressLine::show(std::int64_t done, std::int64_t total, std::string_view detail) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  show_words(share, fmt::format("{}/{} {}", done, total, detail));
}

void ProgressLine::show_words(double share, std::string_view words) {
  if (!isatty(STDERR_FILENO)) return;
  const double now = seconds();
  if (shown_ && now - last_s_ < 0.1 && share < 1) return;
  last_s_ = now;
  shown_ = true;
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(kWidth * std::clamp(share, 0.0, 1.0));
  const std::string line = fmt::format("{} [{:=<{}}{: <{}}] {}", label_, "", filled, "",
                                       kWidth - filled, for_terminal(words));
  std::fprintf(stderr, "\r\033[K%s", first_characters(line, columns() - 1).c_str());
  std::fflush(stderr);
}

void ProgressLine::finish() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace app
