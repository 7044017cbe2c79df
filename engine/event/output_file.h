// A file that is either whole or not there: written beside its name, synced, renamed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace engine {

class OutputFile {
 public:
  /// Writes like ::write; a test puts a failing one in place.
  using Write = std::function<ssize_t(int fd, const void* bytes, std::size_t n)>;

  /// `path` ending in ".gz" is compressed.
  /// @throws Error(Resources)  naming the file and the system's reason; also in write and finish.
  /// The file that had the name stays as it was.
  explicit OutputFile(const std::string& path, Write write = {});
  /// Without finish() nothing is left of it.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void finish();
  /// Bytes in the file, compressed ones where it is.
  std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  void put(std::string_view bytes);
  void deflate_more(std::string_view bytes, int flush);
  [[noreturn]] void fail(const std::string& what, int error);

  std::string path_, temporary_;
  Write write_;
  int fd_ = -1;
  std::uint64_t n_bytes_ = 0;
  std::string buffer_;
  void* deflater_ = nullptr;  // z_stream, where compressed
};

bool is_gzip_name(std::string_view path);

}  // namespace engine
