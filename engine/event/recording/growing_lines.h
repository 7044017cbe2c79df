// A text file that another process appends to: its whole lines, as they come. A last line without
// its end waits for it; a file that was written anew is read anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace engine {

class GrowingLines {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

  /// Nothing is opened yet, and the file need not be there.
  explicit GrowingLines(std::string path) : path_(std::move(path)) {}

  struct News {
    bool anew = false;  // what was told before is no longer true: the file is another, or gone
    std::vector<std::string> lines;  // whole ones, without their ends, in order
    bool more = false;               // the file has more to read than was asked for
    bool none() const { return !anew && lines.empty(); }
  };
  /// What came since the last look, from at most so many bytes of the file.
  /// @throws Error(BadInput)   it is not a regular file, or a line is longer than kMaxLineBytes
  /// @throws Error(Resources)  it cannot be read
  News look(std::size_t max_bytes);
  /// Whether a look might find something: another size or time than when it was looked at. Cheap.
  bool may_have_news() const;

  const std::string& path() const { return path_; }
  /// Of the last line told, from 1; 0: none yet.
  std::int64_t line_number() const { return n_lines_; }

 private:
  /// Size and time of a file's last change; both 0 where there is none.
  struct State {
    std::uint64_t size = 0;
    std::filesystem::file_time_type changed{};
    bool operator==(const State&) const = default;
  };
  State state() const;
  void forget();

  std::string path_;
  State seen_;                // at the last look
  bool behind_ = false;       // that look left something
  std::uint64_t offset_ = 0;  // bytes read
  std::string before_;        // the last of them
  std::string begun_;         // of these, a line without its end
  std::int64_t n_lines_ = 0;
};

}  // namespace engine
