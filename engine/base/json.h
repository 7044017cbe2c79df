// JSON from files nobody vouches for. Written here because the readers of model files need what a
// general library does not give together: byte offsets in every message, integers that never pass
// through a double, a depth limit with constant stack, duplicate keys refused, and headers of
// 100 MB read without building a tree.
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

/// A number as it was written.
struct JsonNumber {
  std::string_view text;
  /// The exact value; nullopt if it has a fraction or an exponent or does not fit 64 bits.
  std::optional<std::int64_t> integer() const;
  /// The nearest double; infinite if too large.
  double real() const;
};

/// Reads one JSON text front to back, value by value. Every method throws Error(BadInput) naming
/// file and place when the text is not JSON there, or not of the kind asked for.
class JsonReader {
 public:
  enum class Kind { Object, Array, String, Number, Bool, Null };
  enum class Places { LineAndColumn, Byte };

  /// Checks that the whole of `text` (borrowed) is UTF-8. `first_byte` is added to the offsets of
  /// Places::Byte.
  /// @param max_depth  how many objects and arrays may be open at once
  JsonReader(std::string_view text,
             std::string file,
             Places places = Places::LineAndColumn,
             std::size_t first_byte = 0,
             std::int64_t max_depth = FileLimits{}.json_depth);

  Kind kind();
  void enter_object();
  /// The next key of the object entered last, or false at its end.
  bool next_key(std::string& key);
  void enter_array();
  /// True before each element of the array entered last, false at its end.
  bool next_item();

  std::string string();
  JsonNumber number();
  bool boolean();
  void null();
  /// Passes over one value of any kind, checking it.
  void skip();
  /// Nothing but white space may follow.
  void end();

  /// "byte 17", "line 2, column 5" of the place reached.
  std::string place() const;
  const std::string& file() const { return file_; }
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
  // Of each open value, outermost first: is it an object, and was an element of it read already?
  std::vector<bool> is_object_, begun_;
};

const char* name_of(JsonReader::Kind kind);

/// A JSON value as a tree, for small files.
struct Json {
  JsonReader::Kind kind = JsonReader::Kind::Null;
  bool boolean = false;
  std::string text;  // of a string, or of a number as written
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;

  /// The member of an object, null if there is none.
  const Json* find(std::string_view key) const;
  bool is(JsonReader::Kind k) const { return kind == k; }
  JsonNumber number() const { return {text}; }
  /// The value for a message: "\"32\"", "1.5", "null", "an array".
  std::string shown() const;
};

/// Reads a whole text; accepts a byte order mark, refuses duplicate keys.
/// @throws Error(BadInput)  naming file, line and column
Json parse_json(std::string_view text,
                const std::string& file,
                std::int64_t max_depth = FileLimits{}.json_depth);
/// The same for a regular file.
Json read_json_file(const std::string& path, const FileLimits& limits);
/// The same for a file that is read once: a pipe or, for "-", standard input too.
/// @throws Error(BadInput)  as read_text_input() and parse_json()
Json read_json_input(const std::string& path, const FileLimits& limits);

}  // namespace engine
