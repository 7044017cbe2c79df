// A file that is either whole or not there: written beside its name, synced, renamed.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace engine {

class OutputFile {
 public:
  /// Writes like ::write; a test puts a failing one in place.
  using Write = std::function<ssize_t(int fd, const void* bytes, std::size_t n)>;
  /// NewName: where something has the name at finish(), the first of numbered() that nothing has.
  enum class IfExists : std::uint8_t { Replace, NewName };

  /// `path` ending in ".gz" is compressed.
  /// @throws Error(Resources)  naming the file and the system's reason; also in write and finish.
  /// The file that had the name stays as it was.
  explicit OutputFile(const std::string& path,
                      Write write = {},
                      IfExists if_exists = IfExists::Replace);
  /// Without finish() nothing is left of it.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  void finish();
  /// The name taken; after finish() perhaps not the one asked for.
  const std::string& path() const { return path_; }
  /// Bytes in the file, compressed ones where it is.
  std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  void take_a_free_name();
  void put(std::string_view bytes);
  void deflate_more(std::string_view bytes, int flush);
  [[noreturn]] void fail(const std::string& what, int error);

  std::string path_, temporary_;
  Write write_;
  IfExists if_exists_;
  int fd_ = -1;
  std::uint64_t n_bytes_ = 0;
  std::string buffer_;
  void* deflater_ = nullptr;  // z_stream, where compressed
};

/// A file of `bytes`, whole or not there. @throws Error(Resources) as OutputFile does.
void write_whole_file(const std::string& path, std::string_view bytes);

/// Begins a file of this name and gives it up: what was there stays as it was.
/// @throws Error(Resources) as OutputFile does, for a command to be refused before it computes
void check_can_be_written(const std::string& path);

bool is_gzip_name(std::string_view path);

inline constexpr int kMaxNames = 10'000;  // tried before a name is given up
/// "dir/run.json.gz", 3 -> "dir/run-3.json.gz"; with 1 the path itself.
std::string numbered(const std::string& path, int n);
/// Makes an empty file and opens it for appending. That it is made here is the lock: of several who
/// want one name, programs or threads, one gets it.
/// @return  its descriptor, or -1 with errno; EEXIST where something has the name
int create_exclusively(const std::string& path);

// A lock that keeps two processes from writing one output at once. The system drops it when the
// process that holds it ends.
class OutputLock {
 public:
  OutputLock() = default;  // holds nothing
  /// Locks a folder, or a file that is only appended to, which is made if it is not there.
  /// @throws Error(Usage)      another process holds the lock
  /// @throws Error(Resources)  the file cannot be made
  static OutputLock on(const std::string& path);
  /// Locks a file that is replaced as a whole, by "PATH.lock" beside it, which is removed at the end.
  /// @throws Error  as on()
  static OutputLock beside(const std::string& path);
  ~OutputLock();
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&& other) noexcept;

 private:
  OutputLock(int fd, std::string to_remove);

  int fd_ = -1;
  std::string to_remove_;  // empty: nothing
};

}  // namespace engine
