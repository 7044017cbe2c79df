// Reads JSON from untrusted files. Model files need properties that the general library lacks: byte
// offsets in every message, 64-bit integers without rounding, a depth limit with constant stack,
// refused duplicate keys, and headers of 100 MB without a tree in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/limits.h"

namespace engine {

/// A number as the file writes it.
struct JsonNumber {
  std::string_view text;
  /// The exact value; nullopt if it has a fraction or an exponent or does not fit 64 bits.
  std::optional<std::int64_t> integer() const;
  /// The nearest double; infinite if too large.
  double real() const;
};

/// Reads one JSON text value by value. Every method throws Error(BadInput) with file and place if
/// the text is not JSON there, or has a value of another kind.
class JsonReader {
 public:
  /// The kind of a value.
  enum class Kind { Object, Array, String, Number, Bool, Null };
  /// The form of places in messages.
  enum class Places { LineAndColumn, Byte };

  /// Checks that `text` (borrowed) is UTF-8.
  /// @param first_byte  added to the offsets of Places::Byte
  /// @param max_depth   maximum number of nested objects and arrays
  JsonReader(std::string_view text,
             std::string file,
             Places places = Places::LineAndColumn,
             std::size_t first_byte = 0,
             std::int64_t max_depth = FileLimits{}.json_depth);

  /// The kind of the next value.
  Kind kind();
  /// Enters an object; next_key() reads its members.
  void enter_object();
  /// Reads the next key of the innermost object; false at its end.
  bool next_key(std::string& key);
  /// Enters an array; next_item() reads its elements.
  void enter_array();
  /// True before each element of the innermost array, false at its end.
  bool next_item();

  /// Reads a string.
  std::string string();
  /// Reads a number.
  JsonNumber number();
  /// Reads true or false.
  bool boolean();
  /// Reads null.
  void null();
  /// Checks and skips one value of any kind.
  void skip();
  /// Checks that only white space follows.
  void end();

  /// The current place: "byte 17", "line 2, column 5".
  std::string place() const;
  /// The file's name.
  const std::string& file() const { return file_; }
  /// Refuses the text at the current place.
  /// @throws Error(BadInput)  always
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const;

 private:
  void skip_space();
  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  std::string shown_next() const;
  void enter(char open);
  bool next(char close, const char* expected);
  void literal(std::string_view word);
  char32_t escape_digits();
  void append_escape(std::string& out);

  std::string_view text_;
  std::string file_;
  Places places_;
  std::size_t first_byte_;
  std::size_t pos_ = 0;
  std::int64_t max_depth_;
  // For each open value, outermost first: is it an object, and was an element read?
  std::vector<bool> is_object_, begun_;
};

/// "an object", "a string", ...
const char* name_of(JsonReader::Kind kind);

/// A JSON value as a tree, for small files.
struct Json {
  JsonReader::Kind kind = JsonReader::Kind::Null;
  bool boolean = false;
  std::string text;  // of a string; of a number as the file writes it
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;

  Json() = default;  // no aggregate: clang 14 needs a complete pair to initialise one
  /// A member of an object; null if there is none.
  const Json* find(std::string_view key) const;
  /// True for a value of this kind.
  bool is(JsonReader::Kind k) const { return kind == k; }
  /// The value of a number.
  JsonNumber number() const { return {text}; }
  /// The value for a message: "\"32\"", "1.5", "null", "an array".
  std::string shown() const;
};

/// Reads the next value of a text; refuses duplicate keys.
/// @throws Error(BadInput)  naming the place
Json read_json_value(JsonReader& reader);
/// Parses a whole text; accepts a byte order mark, refuses duplicate keys.
/// @throws Error(BadInput)  naming file, line and column
Json parse_json(std::string_view text,
                const std::string& file,
                std::int64_t max_depth = FileLimits{}.json_depth);
/// Parses a regular file.
/// @throws Error(BadInput)  as parse_json(), and for a file of another format, by its name
Json read_json_file(const std::string& path, const FileLimits& limits);
/// Parses a file that is read once, which may be a pipe or, for "-", standard input.
/// @throws Error(BadInput)  as read_text_input() and parse_json()
Json read_json_input(const std::string& path, const FileLimits& limits);

}  // namespace engine
