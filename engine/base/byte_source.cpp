#include "engine/base/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/base/types.h"

namespace engine {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  return S_ISFIFO(mode) ? "a pipe" : "a device or socket";
}

class File : public ByteSource {
 public:
  explicit File(const std::string& path) : name_(escaped(path)) {
    // Without O_NONBLOCK the open of a pipe waits for a writer.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) {
      const ErrorCode code =
          errno == ENOENT || errno == ENOTDIR ? ErrorCode::BadInput : ErrorCode::Resources;
      throw Error(code, fmt::format("{}: cannot be opened: {}", name_, std::strerror(errno)));
    }
    struct stat status {};
    if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(fd_);
      throw Error(
          ErrorCode::BadInput,
          fmt::format(
              "{}: found {} (not a regular file), expected a regular file, as it is read at "
              "any offset; write it to a file first",
              name_, kind_of(status.st_mode)));
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~File() override { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  std::size_t read_at(std::uint64_t offset, std::span<char> out) override {
    for (;;) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno == EINTR) continue;
      throw Error(ErrorCode::Resources,
                  fmt::format("{}: read at byte {}: {}", name_, offset, std::strerror(errno)));
    }
  }

 private:
  std::string name_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

class Memory : public ByteSource {
 public:
  Memory(std::string bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  std::size_t read_at(std::uint64_t offset, std::span<char> out) override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t n = std::min<std::size_t>(out.size(), bytes_.size() - offset);
    std::copy_n(bytes_.data() + offset, n, out.data());
    return n;
  }

 private:
  std::string bytes_;
  std::string name_;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  return std::make_unique<File>(path);
}

std::unique_ptr<ByteSource> in_memory(std::string bytes, std::string name) {
  return std::make_unique<Memory>(std::move(bytes), std::move(name));
}

}  // namespace engine
