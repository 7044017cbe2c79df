#include "engine/base/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/text.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr mode_t kLockMode = 0644;

int opened_for_lock(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOTDIR || errno == ENOENT))
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kLockMode);
  if (fd < 0)
    throw Error(ErrorCode::Resources,
                quoted_for_message(path) + ": cannot be written: " + std::strerror(errno));
  return fd;
}

// A file system without locks refuses the call for another reason; there the name is not locked.
void take_lock(int fd, const std::string& output) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd);
  throw Error(ErrorCode::Usage, quoted_for_message(output) +
                                    ": another process writes there now; wait for its end, or give "
                                    "another name");
}

bool has_this_name(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

OutputLock OutputLock::on(const std::string& path) {
  const int fd = opened_for_lock(path);
  take_lock(fd, path);
  return {fd, {}};
}

// The process that held the lock may remove the file between the two calls.
OutputLock OutputLock::beside(const std::string& path) {
  const std::string name = path + ".lock";
  for (;;) {
    const int fd = opened_for_lock(name);
    take_lock(fd, path);
    if (has_this_name(fd, name)) return {fd, name};
    ::close(fd);
  }
}

OutputLock::OutputLock(int fd, std::string to_remove) : fd_(fd), to_remove_(std::move(to_remove)) {}

OutputLock::OutputLock(OutputLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), to_remove_(std::exchange(other.to_remove_, {})) {}

OutputLock& OutputLock::operator=(OutputLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(to_remove_, other.to_remove_);
  return *this;
}

OutputLock::~OutputLock() {
  if (fd_ < 0) return;
  if (!to_remove_.empty()) ::unlink(to_remove_.c_str());
  ::close(fd_);
}

}  // namespace engine
