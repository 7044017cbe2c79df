// A regular file mapped into memory, read only. The process survives if the file shrinks or
// changes.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace engine {

/// A mapped file. If another process truncates it, a lost page reads as zeros instead of raising
/// SIGBUS, and check() throws. Replacing the file by rename does not affect the mapping.
class MappedFile {
 public:
  /// Maps a file. Never blocks on a pipe.
  /// @throws Error(BadInput)   if `path` is not a readable regular file
  /// @throws Error(Resources)  if descriptors or address space ran out
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// The path given to open().
  const std::string& path() const { return path_; }
  /// The whole content.
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  /// Checks that the file did not change.
  /// @throws Error(BadInput)  if its length or time changed since open(), or a page was lost
  void check() const;
  /// Releases the memory of the whole pages in [begin, end); a later read loads them again.
  void release(std::size_t begin, std::size_t end) const;

 private:
  MappedFile() = default;

  std::string path_;
  int fd_ = -1;
  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::timespec modified_{};
  int guard_ = -1;  // index into the table of guarded ranges
};

/// Reads a whole file.
/// @throws Error(BadInput)  as MappedFile::open(), and for more than max_bytes
std::string read_text_file(const std::string& path, std::size_t max_bytes);

}  // namespace engine
