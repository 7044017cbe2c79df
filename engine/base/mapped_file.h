// A regular file mapped into memory, read only, that may shrink or change without killing us.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace engine {

/// Guards its pages: when another process truncates the file, touching a lost page reads zeros
/// instead of raising SIGBUS, and check() says so. Replacing the file by rename changes nothing
/// here, the opened one stays.
class MappedFile {
 public:
  /// @throws Error(BadInput)   if `path` is not a readable regular file; never blocks on a pipe
  /// @throws Error(Resources)  if descriptors or address space ran out
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  /// @throws Error(BadInput)  if the file has another length or time than when it was opened, or a
  ///                          page of it was lost while being read
  void check() const;
  /// Tells the system that the whole pages within [begin, end) are not needed for now.
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

/// The whole text of a small file.
/// @throws Error(BadInput)  also if it is longer than max_bytes
std::string read_text_file(const std::string& path, std::size_t max_bytes);

}  // namespace engine
