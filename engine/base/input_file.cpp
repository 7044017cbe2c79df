#include "engine/base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/types.h"

namespace engine {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kChunkBytes = 1 << 16;

/// A file descriptor, closed by the destructor.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw Error(ErrorCode::BadInput, name + ": " + why);
}

[[noreturn]] void refuse_errno(const std::string& name, int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO)
    throw Error(ErrorCode::Resources,
                fmt::format("{}: cannot open: {}", name, std::strerror(error)));
  const char* hint = error == ENOENT || error == ENOTDIR ? "; is the name right?" : "";
  refuse(name, fmt::format("cannot be opened: {}{}", std::strerror(error), hint));
}

[[noreturn]] void refuse_length(const std::string& name, std::uint64_t max_bytes) {
  refuse(name, fmt::format("found more than {} bytes, expected at most that number; split the file",
                           max_bytes));
}

/// Refuses directories and block devices, and with Pipes::Refuse pipes, sockets and terminals.
void check_kind(const std::string& name, mode_t mode, Pipes pipes) {
  if (S_ISREG(mode)) return;
  if (S_ISDIR(mode)) refuse(name, "found a directory, expected a file");
  if (S_ISBLK(mode)) refuse(name, "found a device, expected a file");
  if (pipes == Pipes::Read) return;
  const char* kind = S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
  refuse(name, fmt::format("found {}, expected a regular file, as it is read more than once; write "
                           "it to a file first",
                           kind));
}

/// Opens without blocking: the open of a pipe would wait for a writer; poll() waits later.
int opened(const std::string& path) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  return is_standard_input(path) ? ::dup(STDIN_FILENO) : ::open(path.c_str(), flags);
}

/// Up to `n` bytes, 0 at the end.
std::size_t read_some(int fd, const std::string& name, char* into, std::size_t n, bool waits) {
  for (;;) {
    if (waits) {
      pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, -1) < 0 && errno != EINTR) refuse_errno(name, errno);
      if (wanted.revents == 0) continue;
    }
    const ssize_t got = ::read(fd, into, n);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EINTR || errno == EAGAIN) continue;
    throw Error(ErrorCode::Resources, fmt::format("{}: read: {}", name, std::strerror(errno)));
  }
}

/// "UTF-16 (little-endian)", recognised by a byte order mark or by the zeros of ASCII letters; ""
/// for UTF-8.
std::string other_encoding(std::string_view bytes) {
  if (bytes.starts_with("\xff\xfe\0\0"sv) || bytes.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  const bool zero_first = bytes.size() > 3 && bytes[0] == '\0' && bytes[1] != '\0';
  const bool zero_second = bytes.size() > 3 && bytes[0] != '\0' && bytes[1] == '\0';
  if (bytes.starts_with("\xff\xfe") || (zero_second && bytes[3] == '\0'))
    return "UTF-16 (little-endian)";
  if (bytes.starts_with("\xfe\xff") || (zero_first && bytes[2] == '\0'))
    return "UTF-16 (big-endian)";
  return "";
}

}  // namespace

bool is_standard_input(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0";
}

std::string input_name(const std::string& path) {
  return is_standard_input(path) ? "standard input" : path;
}

std::string_view text_of_input(std::string_view bytes, const std::string& name) {
  if (const std::string encoding = other_encoding(bytes); !encoding.empty())
    refuse(name, fmt::format("found text in {}, expected UTF-8; `iconv -f {} -t UTF-8` converts it",
                             encoding, encoding.substr(0, encoding.find(' '))));
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  return bytes;
}

std::string read_text_input(const std::string& path, Pipes pipes, std::uint64_t max_bytes) {
  const std::string name = input_name(path);
  if (path.find('\0') != std::string::npos) refuse(name, "found a NUL in the name of a file");
  const OpenFile file(opened(path));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) refuse_errno(name, errno);
  check_kind(name, info.st_mode, pipes);
  const bool is_regular = S_ISREG(info.st_mode);
  std::string bytes;
  if (is_regular && static_cast<std::uint64_t>(info.st_size) > max_bytes)
    refuse_length(name, max_bytes);
  if (is_regular) bytes.reserve(static_cast<std::size_t>(info.st_size));
  std::string chunk(kChunkBytes, '\0');
  while (const std::size_t n =
             read_some(file.get(), name, chunk.data(), chunk.size(), !is_regular)) {
    if (bytes.size() + n > max_bytes) refuse_length(name, max_bytes);
    bytes.append(chunk, 0, n);
  }
  bytes.erase(0, bytes.size() - text_of_input(bytes, name).size());
  return bytes;
}

void refuse_pipe(const std::string& path) {
  struct stat info {};
  if (is_standard_input(path)) refuse(input_name(path), "found a pipe, expected a regular file");
  if (::stat(path.c_str(), &info) == 0) check_kind(path, info.st_mode, Pipes::Refuse);
}

bool InputLines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  number_++;
  return true;
}

}  // namespace engine
