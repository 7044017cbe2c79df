// Reads text files that the user names. Accepts a byte order mark and CR LF line ends, refuses
// other encodings than UTF-8 by name, and reads a pipe or standard input to its end if the caller
// allows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace engine {

/// Refuse: for a file that is read more than once, or written.
enum class Pipes : std::uint8_t { Read, Refuse };

/// Limit of an input file in bytes: some millions of prompts or records.
inline constexpr std::uint64_t kMaxInputBytes = 1'000'000'000;

/// True for "-", /dev/stdin and its other names.
bool is_standard_input(const std::string& path);
/// The name for messages: "standard input" or the path.
std::string input_name(const std::string& path);

/// Reads a whole text, without its byte order mark. Blocks until the writer closes a pipe.
/// @throws Error(BadInput)   no such file, a directory, a pipe with Pipes::Refuse, more than
///                           max_bytes, or UTF-16 or UTF-32
/// @throws Error(Resources)  the system's reason
std::string read_text_input(const std::string& path,
                            Pipes pipes,
                            std::uint64_t max_bytes = kMaxInputBytes);

/// Checks the encoding of text that was read elsewhere.
/// @return  the text without its byte order mark
/// @throws Error(BadInput)  for UTF-16 and UTF-32, by name
std::string_view text_of_input(std::string_view bytes, const std::string& name);

/// Checks that `path` is no pipe.
/// @throws Error(BadInput)  for a pipe, a directory or a device
void refuse_pipe(const std::string& path);

/// The lines of a text, without the LF or CR LF at their end and without a byte order mark at their
/// start, which joined files have.
class InputLines {
 public:
  /// @param text  borrowed
  explicit InputLines(std::string_view text) : rest_(text) {}
  /// Reads the next line.
  /// @return  false after the last line
  bool next(std::string_view& line);
  /// Number of the line that next() returned last, from 1.
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

}  // namespace engine
