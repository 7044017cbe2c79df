// Output files. A file is written under a temporary name, synced and renamed, so that a reader sees
// the whole file or none.
#pragma once

#include <sys/types.h>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace engine {

/// A file that gets its name in finish().
class OutputFile {
 public:
  /// Writes like ::write; tests set one that fails.
  using Write = std::function<ssize_t(int fd, const void* bytes, std::size_t n)>;
  /// NewName: if the name exists at finish(), the first free one of numbered().
  enum class IfExists : std::uint8_t { Replace, NewName };

  /// Begins a file; compressed if `path` ends in ".gz". An existing file stays until finish().
  /// @throws Error(Resources)  with the file and the system's reason; also write() and finish()
  explicit OutputFile(const std::string& path,
                      Write write = {},
                      IfExists if_exists = IfExists::Replace);
  /// Removes the file if finish() was not called.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends bytes.
  void write(std::string_view bytes);
  /// Syncs the file and gives it its name.
  void finish();
  /// The file's name; with NewName final after finish().
  const std::string& path() const { return path_; }
  /// Bytes in the file, after compression.
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

/// Writes a file of `bytes`.
/// @throws Error(Resources)  as OutputFile()
void write_whole_file(const std::string& path, std::string_view bytes);

/// Writes a file under the first free name of numbered().
/// @return  that name
/// @throws Error(Resources)  as OutputFile()
std::string write_new_file(const std::string& path, std::string_view bytes);

/// Checks that a file of this name can be begun, so that a command fails before it computes. An
/// existing file stays.
/// @throws Error(Resources)  as OutputFile()
void check_can_be_written(const std::string& path);

/// True if the name ends in ".gz".
bool is_gzip_name(std::string_view path);

inline constexpr int kMaxNames = 10'000;  // number of names that are tried
/// "dir/run.json.gz", 3 -> "dir/run-3.json.gz"; with 1 the path itself.
std::string numbered(const std::string& path, int n);
/// Creates an empty file and opens it for appending. Creation is exclusive: of several programs or
/// threads one gets the name.
/// @return  the descriptor, or -1 with errno; EEXIST if the name exists
int create_exclusively(const std::string& path);

/// Keeps two processes from writing one output at once. The system releases the lock when the
/// process ends.
class OutputLock {
 public:
  /// Holds no lock.
  OutputLock() = default;
  /// Locks a folder, or a file that is only appended to, which is created if it does not exist.
  /// @throws Error(Usage)      another process holds the lock
  /// @throws Error(Resources)  the file cannot be created
  static OutputLock on(const std::string& path);
  /// Locks a file that is replaced as a whole, with a file "PATH.lock", which the destructor
  /// removes.
  /// @throws Error  as on()
  static OutputLock beside(const std::string& path);
  ~OutputLock();
  /// Takes over the lock of `other`.
  OutputLock(OutputLock&& other) noexcept;
  OutputLock& operator=(OutputLock&& other) noexcept;

 private:
  OutputLock(int fd, std::string to_remove);

  int fd_ = -1;
  std::string to_remove_;  // the lock file; empty: none
};

}  // namespace engine
