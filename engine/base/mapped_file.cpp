#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "engine/base/refuse.h"
#include "engine/base/types.h"

namespace engine {
namespace {

// A signal handler may read nothing but lock-free atomics, so the guarded ranges are a fixed table.
struct GuardedRange {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  // 0: the slot is free
  std::atomic<bool> lost{false};
};
constexpr int kMaxMappings = 4096;
std::array<GuardedRange, kMaxMappings> guarded;
std::mutex guarded_mutex;
struct sigaction previous_action;

std::uintptr_t page_bytes() {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Maps a page of zeros over the lost page; the faulting read then continues.
void on_sigbus(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (GuardedRange& range : guarded) {
    const std::uintptr_t end = range.end.load();
    if (end == 0 || address < range.begin.load() || address >= end) continue;
    void* page = reinterpret_cast<void*>(address & ~(page_bytes() - 1));
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(page, page_bytes(), PROT_READ, flags, -1, 0) == MAP_FAILED) break;
    range.lost = true;
    return;
  }
  sigaction(signal, &previous_action,
            nullptr);  // no page of ours: the fault repeats and the previous handler gets it
}

int guard(std::uintptr_t begin, std::uintptr_t end) {
  const std::lock_guard lock(guarded_mutex);
  static const bool installed = [] {
    page_bytes();
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &previous_action) == 0;
  }();
  if (!installed) return -1;
  for (int i = 0; i < kMaxMappings; i++) {
    GuardedRange& range = guarded[static_cast<std::size_t>(i)];
    if (range.end.load() != 0) continue;
    range.lost = false;
    range.begin = begin;
    range.end = end;
    return i;
  }
  return -1;
}

void unguard(int slot) {
  const std::lock_guard lock(guarded_mutex);
  guarded[static_cast<std::size_t>(slot)].end = 0;
}

[[noreturn]] void refuse_errno(const std::string& path, int error) {
  const bool exhausted = error == EMFILE || error == ENFILE || error == ENOMEM;
  if (exhausted) {
    throw Error(ErrorCode::Resources, escaped(path) + ": cannot open: " + std::strerror(error));
  }
  constexpr int kMaxPathCharacters = 4096;  // the caller named the path, so it is shown whole
  throw Error(ErrorCode::BadInput,
              escaped(path, kMaxPathCharacters) + ": cannot be opened: " + std::strerror(error));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

// Checks the kind before opening, because opening a device or a pipe can have effects.
int open_regular(const std::string& path, struct stat& info) {
  if (path.find('\0') != std::string::npos) refuse(path, "path", "a NUL", "a file name");
  if (stat(path.c_str(), &info) != 0) refuse_errno(path, errno);
  const auto require_regular = [&] {
    if (S_ISREG(info.st_mode)) return;
    refuse(path, "file", std::string(kind_of(info.st_mode)) + " (not a regular file)",
           "a regular file");
  };
  require_regular();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) refuse_errno(path, errno);
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    refuse_errno(path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    require_regular();
  }
  return fd;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile);  // the constructor is private
  struct stat info {};
  file->path_ = path;
  file->fd_ = open_regular(path, info);
  file->size_ = static_cast<std::size_t>(info.st_size);
  file->modified_ = info.st_mtim;
  if (file->size_ == 0) return file;
  void* data = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, file->fd_, 0);
  if (data == MAP_FAILED) refuse_errno(path, errno);
  file->data_ = data;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t n_pages = (file->size_ + page_bytes() - 1) / page_bytes();
  file->guard_ = guard(begin, begin + n_pages * page_bytes());
  if (file->guard_ < 0) {
    throw Error(ErrorCode::Resources, escaped(path) + ": more than 4096 files mapped at once");
  }
  return file;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
  if (guard_ >= 0) unguard(guard_);
  if (fd_ >= 0) ::close(fd_);
}

void MappedFile::check() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) refuse_errno(path_, errno);
  if (static_cast<std::size_t>(info.st_size) != size_) {
    refuse(
        path_, fmt::format("byte {}", std::min(size_, static_cast<std::size_t>(info.st_size))),
        fmt::format("a file of {} bytes", info.st_size),
        fmt::format("the {} bytes it had when it was opened; it was changed while in use", size_));
  }
  const bool lost = guard_ >= 0 && guarded[static_cast<std::size_t>(guard_)].lost;
  const bool modified =
      info.st_mtim.tv_sec != modified_.tv_sec || info.st_mtim.tv_nsec != modified_.tv_nsec;
  if (lost || modified) {
    refuse(path_, "file", lost ? "pages that vanished while being read" : "a newer change",
           "a file that stays as it was when it was opened");
  }
}

void MappedFile::release(std::size_t begin, std::size_t end) const {
  const std::size_t page = page_bytes();
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin >= end) return;
  const bool lost = guard_ >= 0 && guarded[static_cast<std::size_t>(guard_)].lost;
  if (lost) return;
  madvise(static_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

std::string read_text_file(const std::string& path, std::size_t max_bytes) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (file->bytes().size() > max_bytes) {
    refuse(path, "file", fmt::format("{} bytes", file->bytes().size()),
           fmt::format("at most {}", max_bytes));
  }
  std::string text(file->bytes());
  file->check();
  return text;
}

}  // namespace engine
