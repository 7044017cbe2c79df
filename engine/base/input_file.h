// Reads whole text files that a person names, as editors and shells write them. A
// byte order mark and CR LF line ends are read, another encoding than UTF-8 is refused by name,
// and a pipe or standard input is read to its end where the caller reads it once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

/// A file that is read a second time, or written, cannot be a pipe.
enum class Pipes : std::uint8_t { Read, Refuse };

/// Larger files are refused. Of lines of JSON, prompts or records, some millions.
inline constexpr std::uint64_t kMaxInputBytes = 1'000'000'000;

/// "-", /dev/stdin and its other names.
bool is_standard_input(const std::string& path);
/// How a message calls it: "standard input" or the path.
std::string input_name(const std::string& path);

/// The whole text without a byte order mark in front. Waits for who writes into a pipe.
/// @throws Error(BadInput)   not there, a directory, a socket, a pipe that may not be read, longer
///                           than max_bytes, or UTF-16 or UTF-32
/// @throws Error(Resources)  the system's reason
std::string read_text_input(const std::string& path,
                            Pipes pipes,
                            std::uint64_t max_bytes = kMaxInputBytes);

/// The same checks of text that was read otherwise.
/// @throws Error(BadInput)  for UTF-16 and UTF-32, by name
std::string_view text_of_input(std::string_view bytes, const std::string& name);

/// Refuses a pipe where a file is read more than once, or written.
/// @throws Error(BadInput)
void refuse_pipe(const std::string& path);

/// The lines of a text: without the LF or CR LF at their end, and without the byte order mark that
/// stands inside where files were joined.
class InputLines {
 public:
  /// @param text  borrowed
  explicit InputLines(std::string_view text) : rest_(text) {}
  /// @return  false after the last line
  bool next(std::string_view& line);
  /// Of the line that next() gave last, from 1.
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

}  // namespace engine
