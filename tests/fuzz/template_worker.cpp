#include "tests/fuzz/template_worker.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/jinja_render.h"

// The counters of edges, which -fsanitize=fuzzer puts between these symbols.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern std::uint8_t __start___sancov_cntrs[];
[[gnu::weak, gnu::visibility("hidden")]] extern std::uint8_t __stop___sancov_cntrs[];
[[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());
[[gnu::weak]] const char* __asan_get_report_description();
[[gnu::weak]] int __asan_report_present();
}

namespace engine::test {
namespace {

constexpr int kMaxMs = 200;  // a longer render is killed; corpora collect inputs that loop
constexpr int kRendersOfAProcess = 20'000;  // memory that a render loses does not add up
constexpr rlim_t kMoreBytes = 512 << 20;

std::size_t n_counters() {
  return __start___sancov_cntrs
             ? static_cast<std::size_t>(__stop___sancov_cntrs - __start___sancov_cntrs)
             : 0;
}

std::uint8_t* counters() {
  return __start___sancov_cntrs;
}

bool* reported_flag = nullptr;  // in the child: where its parent learns of a report

// Called when a sanitizer ends the process.
void note_report() {
  const std::string_view what =
      __asan_report_present && __asan_report_present() ? __asan_get_report_description() : "";
  const bool is_limit = what == "out-of-memory" || what == "allocation-size-too-big";
  *reported_flag = !is_limit;
}

rlim_t address_space_bytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE));
}

void render_text(const std::string& text) {
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", "Hi <s>"}, {"assistant", "Hello."}, {"user", "2 + 2?"}};
  try {
    static_cast<void>(
        render_jinja(text, messages, {.bos = "<s>", .eos = "</s>", .now = 1785502800}));
  } catch (const std::bad_alloc&) {
    return;
  }
}

}  // namespace

struct TemplateWorker::Shared {
  bool has_report = false;
  std::size_t size = 0;
  char text[kMaxBytes] = {};
  std::uint8_t* coverage() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

TemplateWorker::TemplateWorker() : shared_bytes_(sizeof(Shared) + n_counters()) {
  void* memory =
      mmap(nullptr, shared_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
  shared_ = new (memory) Shared;
}

TemplateWorker::~TemplateWorker() {
  stop();
  munmap(shared_, shared_bytes_);
}

void TemplateWorker::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no socket");
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("no process");
  if (child_ == 0) {
    close(ends[0]);
    serve(ends[1]);
  }
  close(ends[1]);
  to_child_ = ends[0];
  n_rendered_ = 0;
}

void TemplateWorker::stop() {
  if (child_ < 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  close(to_child_);
  child_ = -1;
}

void TemplateWorker::serve(int from_parent) const {
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGINT, SIGTERM})
    std::signal(number, SIG_DFL);
  reported_flag = &shared_->has_report;
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(note_report);
  const rlim_t most = address_space_bytes() + kMoreBytes;
  const rlimit memory = {most, most}, none = {0, 0};
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &none);
  for (char byte = 0; read(from_parent, &byte, 1) == 1;) {
    std::fill_n(counters(), n_counters(), std::uint8_t{0});
    render_text({shared_->text, shared_->size});
    std::copy_n(counters(), n_counters(), shared_->coverage());
    if (write(from_parent, &byte, 1) != 1) break;
  }
  _exit(0);
}

bool TemplateWorker::has_answered() const {
  pollfd ready = {to_child_, POLLIN, 0};
  char byte = 0;
  return poll(&ready, 1, kMaxMs) > 0 && read(to_child_, &byte, 1) == 1;
}

void TemplateWorker::render(const std::uint8_t* data, std::size_t size) {
  if (child_ < 0) start();
  shared_->has_report = false;
  shared_->size = std::min(size, kMaxBytes);
  std::copy_n(data, shared_->size, reinterpret_cast<std::uint8_t*>(shared_->text));
  const char go = 0;
  const bool is_sent = send(to_child_, &go, 1, MSG_NOSIGNAL) == 1;
  if (is_sent && has_answered()) {
    for (std::size_t i = 0; i < n_counters(); i++)
      counters()[i] = std::max(counters()[i], shared_->coverage()[i]);
    if (++n_rendered_ == kRendersOfAProcess) stop();
    return;
  }
  stop();
  if (shared_->has_report) std::abort();
}

}  // namespace engine::test
