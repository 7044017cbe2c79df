#include "engine/chat/chat_template.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/base/types.h"
#include "engine/chat/jinja_render.h"
#include "engine/data/sandbox/child_process.h"

namespace engine {
namespace {

using Clock = std::chrono::steady_clock;

// The child's answer: one of these bytes, then fields with their lengths.
constexpr char kRendered = 'R', kError = 'E', kRefused = 'X', kNoMemory = 'M';

void append_field(std::string& out, std::string_view field) {
  const std::uint64_t size = field.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(field);
}

std::string answer_of(const JinjaResult& result) {
  if (!result.error.empty()) {
    std::string answer(1, result.refused ? kRefused : kError);
    append_field(answer, std::to_string(result.line));
    append_field(answer, result.error);
    return answer;
  }
  std::string answer(1, kRendered);
  for (const ChatPart& part : result.parts) {
    answer += part.from_message ? '1' : '0';
    append_field(answer, part.text);
  }
  return answer;
}

/// Returns how many bytes of address space this process uses; 0: unknown.
std::int64_t address_space_bytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::int64_t>(pages) * sysconf(_SC_PAGESIZE);
}

void limit(int what, std::int64_t value) {
  const rlimit both = {static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  setrlimit(static_cast<__rlimit_resource_t>(what), &both);
}

/// Restricts the child process: it prints no messages, opens no files, has default handlers for
/// signals, and has bounded memory.
void confine(std::int64_t address_space) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) dup2(null, STDERR_FILENO);
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGINT, SIGTERM, SIGPIPE})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 0);  // keeps open files open and prevents opening others
  if (address_space > 0) limit(RLIMIT_AS, address_space);
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

[[noreturn]] void render_and_exit(int answer,
                                  const std::string& text,
                                  std::span<const ChatMessage> messages,
                                  const ChatSettings& settings,
                                  std::int64_t address_space) {
  confine(address_space);
  try {
    write_all(answer, answer_of(render_jinja(text, messages, settings)));
  } catch (const std::bad_alloc&) {
    write_all(answer, {&kNoMemory, 1});
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

/// Reads all output of the child, at most `most` bytes; nullopt if the time runs out.
std::optional<std::string> read_answer(int fd, Clock::time_point deadline, std::size_t most) {
  std::string answer;
  std::vector<char> buffer(1 << 16);
  while (answer.size() <= most) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd ready = {fd, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    answer.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return answer;
}

/// Reads the fields of the child's answer in order.
class Answer {
 public:
  explicit Answer(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }
  char byte() {
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return first;
  }
  std::string field() {
    std::uint64_t size = 0;
    ensure(rest_.size() >= sizeof size, "the rendering process sent an incomplete answer");
    std::memcpy(&size, rest_.data(), sizeof size);
    rest_.remove_prefix(sizeof size);
    ensure(rest_.size() >= size, "the rendering process sent an incomplete answer");
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
};

constexpr const char* kRaw = "; --raw takes the prompt as it is";

[[noreturn]] void refuse_limit(const ChatTemplate& chat_template,
                               const std::string& found,
                               const std::string& expected) {
  refuse(chat_template.place, "chat template", found, expected + kRaw);
}

[[noreturn]] void refuse_error(const ChatTemplate& chat_template, char kind, Answer& answer) {
  const std::string line = answer.field();
  const std::string field = line == "0" ? "chat template" : "chat template, line " + line;
  const std::string error = escaped(answer.field(), 300);
  if (kind == kRefused)
    refuse(chat_template.place, field, "a refusal of these messages: " + error,
           std::string("messages that it takes") + kRaw);
  refuse(chat_template.place, field, error, std::string("a template that renders") + kRaw);
}

std::vector<ChatPart> parts_of(Answer& answer) {
  std::vector<ChatPart> parts;
  while (!answer.at_end()) {
    const bool from_message = answer.byte() == '1';
    parts.push_back({answer.field(), from_message});
  }
  return parts;
}

}  // namespace

std::string text_of(std::span<const ChatPart> parts) {
  std::string text;
  for (const ChatPart& part : parts) text += part.text;
  return text;
}

std::vector<ChatPart> render_chat(const ChatTemplate& chat_template,
                                  std::span<const ChatMessage> messages,
                                  const ChatSettings& settings,
                                  const ChatLimits& limits) {
  const auto deadline = Clock::now() + limits.time;
  const std::int64_t own_bytes = address_space_bytes();
  const std::int64_t address_space = own_bytes > 0 ? own_bytes + limits.memory_bytes : 0;
  auto [ours, theirs] = make_pipe();
  tzset();  // reads the time zone's file now, because the child cannot open it
  const pid_t child = fork();
  if (child < 0)
    throw Error(ErrorCode::Resources,
                "chat template: cannot start a process; too many processes or too little memory?");
  if (child == 0)
    render_and_exit(theirs.get(), chat_template.text, messages, settings, address_space);
  theirs.reset();
  constexpr std::size_t kFieldsBytes = 1 << 20;  // beside the text
  const auto most = static_cast<std::size_t>(limits.output_bytes);
  const auto answer = read_answer(ours.get(), deadline, most + kFieldsBytes);
  const bool is_whole = answer && answer->size() <= most + kFieldsBytes;
  if (!is_whole) kill(child, SIGKILL);
  const int status = wait_for_end(child, std::chrono::milliseconds(1000));
  if (!answer)
    refuse_limit(chat_template, fmt::format("no end after {} ms", limits.time.count()),
                 "a template that renders in that time");
  const std::string too_long = fmt::format("more than {} bytes of output", limits.output_bytes);
  if (!is_whole) refuse_limit(chat_template, too_long, "at most that");
  if (answer->empty())
    refuse_limit(chat_template,
                 fmt::format("a crash of its rendering ({})",
                             WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no answer"),
                 "a template that nests less deeply");
  if (answer->front() == kNoMemory)
    refuse_limit(chat_template, fmt::format("more than {} bytes of memory", limits.memory_bytes),
                 "a template that needs less");
  Answer rest(*answer);
  const char kind = rest.byte();
  if (kind != kRendered) refuse_error(chat_template, kind, rest);
  std::vector<ChatPart> parts = parts_of(rest);
  std::size_t n_bytes = 0;
  for (const ChatPart& part : parts) n_bytes += part.text.size();
  if (n_bytes > most) refuse_limit(chat_template, too_long, "at most that");
  return parts;
}

}  // namespace engine
