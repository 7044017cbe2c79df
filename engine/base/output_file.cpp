#include "engine/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "engine/base/text.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;
constexpr int kGzipWindow = 15 + 16;  // zlib: 16 more asks for gzip's header

void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

constexpr mode_t kLockMode = 0644;

int opened_for_lock(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOTDIR || errno == ENOENT))
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kLockMode);
  if (fd < 0)
    throw Error(ErrorCode::Resources,
                escaped(path) + ": cannot be written: " + std::strerror(errno));
  return fd;
}

// On a file system without locks flock fails for another reason, and the output stays unlocked.
void take_lock(int fd, const std::string& output) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd);
  throw Error(ErrorCode::Usage, escaped(output) +
                                    ": another process is writing to it; wait for its end, or give "
                                    "another name");
}

bool has_this_name(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.finish();
}

std::string write_new_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path, {}, OutputFile::IfExists::NewName);
  file.write(bytes);
  file.finish();
  return file.path();
}

void check_can_be_written(const std::string& path) {
  const OutputFile begun(path);
}

bool is_gzip_name(std::string_view path) {
  return path.size() > 3 && path.substr(path.size() - 3) == ".gz";
}

std::string numbered(const std::string& path, int n) {
  if (n == 1) return path;
  const std::size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const std::size_t end = path.size() - (is_gzip_name(path) ? 3 : 0);
  const std::size_t dot = path.rfind('.', end == 0 ? 0 : end - 1);
  const std::size_t cut = dot == std::string::npos || dot <= name ? end : dot;
  return fmt::format("{}-{}{}", path.substr(0, cut), n, path.substr(cut));
}

int create_exclusively(const std::string& path) {
  constexpr mode_t kMode = 0644;
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, kMode);
}

OutputFile::OutputFile(const std::string& path, Write write, IfExists if_exists)
    : path_(path), write_(write ? std::move(write) : Write(::write)), if_exists_(if_exists) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::Resources,
                escaped(path) + ": found a folder or device, expected the name of a file");
  }
  temporary_ = path + fmt::format(".part{}", ::getpid());
  constexpr mode_t kMode = 0644;
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (fd_ < 0)
    throw Error(ErrorCode::Resources,
                fmt::format("{}: cannot be created: {}", escaped(path), std::strerror(errno)));
  if (!is_gzip_name(path)) return;
  auto stream = std::make_unique<z_stream>();
  *stream = {};
  if (deflateInit2(stream.get(), 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    fail("compress", ENOMEM);
  }
  deflater_ = stream.release();
}

OutputFile::~OutputFile() {
  if (deflater_) {
    auto* stream = static_cast<z_stream*>(deflater_);
    deflateEnd(stream);
    delete stream;
  }
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() < kBufferBytes) return;
  deflater_ ? deflate_more(buffer_, Z_NO_FLUSH) : put(buffer_);
  buffer_.clear();
}

void OutputFile::finish() {
  deflater_ ? deflate_more(buffer_, Z_FINISH) : put(buffer_);
  buffer_.clear();
  if (::fsync(fd_) != 0 && errno != EINVAL) fail("sync", errno);
  if (if_exists_ == IfExists::NewName) take_a_free_name();
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    if (if_exists_ == IfExists::NewName)
      ::unlink(path_.c_str());  // the empty file of take_a_free_name()
    throw Error(ErrorCode::Resources,
                fmt::format("{}: rename: {}; the data is in {}", escaped(path_),
                            std::strerror(error), escaped(temporary_)));
  }
  sync_folder_of(path_);
}

// An empty file reserves the name; the rename replaces it.
void OutputFile::take_a_free_name() {
  for (int n = 1; n <= kMaxNames; ++n) {
    const std::string name = numbered(path_, n);
    const int fd = create_exclusively(name);
    if (fd >= 0) {
      ::close(fd);
      path_ = name;
      return;
    }
    if (errno != EEXIST) break;
  }
  fail("create", errno);
}

void OutputFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write_(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("write", n < 0 ? errno : ENOSPC);
    n_bytes_ += static_cast<std::uint64_t>(n);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void OutputFile::deflate_more(std::string_view bytes, int flush) {
  auto* stream = static_cast<z_stream*>(deflater_);
  std::string out(kBufferBytes, '\0');
  stream->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream->avail_in = static_cast<uInt>(bytes.size());
  int status = Z_OK;
  do {
    stream->next_out = reinterpret_cast<Bytef*>(out.data());
    stream->avail_out = static_cast<uInt>(out.size());
    status = deflate(stream, flush);
    put(std::string_view(out).substr(0, out.size() - stream->avail_out));
  } while (stream->avail_out == 0 || (flush == Z_FINISH && status == Z_OK));
}

void OutputFile::fail(const std::string& what, int error) {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
    ::unlink(temporary_.c_str());
  }
  throw Error(ErrorCode::Resources,
              fmt::format("{}: {}: {} after {} bytes; an older file of this name is unchanged",
                          escaped(path_), what, std::strerror(error), n_bytes_));
}

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
