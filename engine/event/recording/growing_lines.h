// Reads the lines of a text file while another process appends to it. The last line is read only
// when its line end was written. If the file was replaced, it is read from its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace engine {

/// The reader of one growing file.
class GrowingLines {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

  /// Opens nothing; the file need not exist.
  explicit GrowingLines(std::string path) : path_(std::move(path)) {}

  /// The result of one read.
  struct Update {
    bool restarted = false;          // the file was replaced or removed: earlier lines are void
    std::vector<std::string> lines;  // new whole lines, without their ends, in order
    bool more = false;               // the file has further bytes beyond max_bytes
    /// True if nothing changed.
    bool empty() const { return !restarted && lines.empty(); }
  };
  /// Reads at most `max_bytes` new bytes.
  /// @throws Error(BadInput)   not a regular file, or a line longer than kMaxLineBytes
  /// @throws Error(Resources)  the file cannot be read
  Update read(std::size_t max_bytes);
  /// True if the file's size or time changed since the last read(), or if that read left bytes
  /// unread. Does not open the file.
  bool may_have_changed() const;

  /// The path given to the constructor.
  const std::string& path() const { return path_; }
  /// Number of the last line returned, from 1; 0: none.
  std::int64_t line_number() const { return n_lines_; }

 private:
  /// Size and time of the last change; both 0 without a file.
  struct State {
    std::uint64_t size = 0;
    std::filesystem::file_time_type changed{};
    bool operator==(const State&) const = default;
  };
  State state() const;
  void forget();

  std::string path_;
  State seen_;                // at the last read()
  bool has_more_ = false;     // that read left bytes
  std::uint64_t offset_ = 0;  // bytes read
  std::string before_;        // the last bytes read, to check whether the file is still the same
  std::string begun_;         // the start of a line without its end
  std::int64_t n_lines_ = 0;
};

}  // namespace engine
