// A file in memory with a path, for readers that map files.
#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace engine::test {

/// Replaces the content of this process's only file in memory, which has no folder. The path remains valid.
inline const std::string& file_in_memory(const std::uint8_t* data, std::size_t size) {
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const bool is_written = ftruncate(fd, static_cast<off_t>(size)) == 0 &&
                          pwrite(fd, data, size, 0) == static_cast<ssize_t>(size);
  if (!is_written) throw std::runtime_error("memfd: no file in memory");
  return path;
}

}  // namespace engine::test
