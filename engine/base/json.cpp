#include "engine/base/json.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "engine/base/file_kind.h"
#include "engine/base/input_file.h"
#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/base/types.h"
#include "engine/base/utf8.h"

namespace engine {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::optional<std::int64_t> JsonNumber::integer() const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double JsonNumber::real() const {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    // from_chars reports too small and too large alike; a number with a negative exponent is small.
    const std::size_t e = text.find_first_of("eE");
    const bool small = e != std::string_view::npos && text.substr(e + 1, 1) == "-";
    return small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return value;
}

const char* name_of(JsonReader::Kind kind) {
  switch (kind) {
    case JsonReader::Kind::Object:
      return "an object";
    case JsonReader::Kind::Array:
      return "an array";
    case JsonReader::Kind::String:
      return "a string";
    case JsonReader::Kind::Number:
      return "a number";
    case JsonReader::Kind::Bool:
      return "true or false";
    case JsonReader::Kind::Null:
      return "null";
  }
  return "?";
}

JsonReader::JsonReader(std::string_view text,
                       std::string file,
                       Places places,
                       std::size_t first_byte,
                       std::int64_t max_depth)
    : text_(text),
      file_(std::move(file)),
      places_(places),
      first_byte_(first_byte),
      max_depth_(max_depth) {
  const std::size_t bad = first_bad_utf8(text_);
  if (bad == text_.size()) return;
  pos_ = bad;
  const bool has_mark = text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff");
  fail(fmt::format("0x{:02x}{}", static_cast<unsigned char>(text_[bad]),
                   bad == 0 && has_mark ? " (UTF-16?)" : ""),
       bad == 0 && has_mark ? "UTF-8 text; `iconv -f UTF-16 -t UTF-8` converts it" : "UTF-8 text");
}

std::string JsonReader::place() const {
  if (places_ == Places::Byte) return fmt::format("byte {}", first_byte_ + pos_);
  const std::string_view before = text_.substr(0, pos_);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t last = before.rfind('\n');
  const std::size_t column = last == std::string_view::npos ? pos_ + 1 : pos_ - last;
  return fmt::format("line {}, column {}", line, column);
}

void JsonReader::fail(const std::string& found, const std::string& expected) const {
  refuse(file_, place(), found, expected);
}

std::string JsonReader::shown_next() const {
  if (pos_ >= text_.size()) return "the end";
  const Utf8Char c = utf8_at(text_, pos_);
  return in_quotes(text_.substr(pos_, static_cast<std::size_t>(c.length)));
}

void JsonReader::skip_space() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
    pos_++;
  }
}

JsonReader::Kind JsonReader::kind() {
  skip_space();
  const char c = peek();
  if (c == '{') return Kind::Object;
  if (c == '[') return Kind::Array;
  if (c == '"') return Kind::String;
  if (c == 't' || c == 'f') return Kind::Bool;
  if (c == 'n') return Kind::Null;
  if (c == '-' || is_digit(c)) return Kind::Number;
  fail(shown_next(), "a JSON value");
}

void JsonReader::enter(char open) {
  skip_space();
  if (peek() != open || pos_ >= text_.size()) {
    fail(shown_next(), open == '{' ? "an object" : "an array");
  }
  if (static_cast<std::int64_t>(begun_.size()) == max_depth_) {
    fail(fmt::format("more than {} nested values", max_depth_), "fewer");
  }
  pos_++;
  begun_.push_back(false);
  is_object_.push_back(open == '{');
}

bool JsonReader::next(char close, const char* expected) {
  skip_space();
  if (pos_ < text_.size() && peek() == close) {
    pos_++;
    begun_.pop_back();
    is_object_.pop_back();
    return false;
  }
  if (begun_.back()) {
    if (peek() != ',') fail(shown_next(), fmt::format("\",\" or \"{}\"", close));
    pos_++;
    skip_space();
    if (peek() == close) fail(shown_next(), expected);  // a trailing comma
  }
  begun_.back() = true;
  return true;
}

void JsonReader::enter_object() {
  enter('{');
}

void JsonReader::enter_array() {
  enter('[');
}

bool JsonReader::next_item() {
  return next(']', "a JSON value");
}

bool JsonReader::next_key(std::string& key) {
  if (!next('}', "a key")) return false;
  if (peek() != '"') fail(shown_next(), "a key in double quotes");
  key = string();
  skip_space();
  if (peek() != ':') fail(shown_next(), "\":\"");
  pos_++;
  return true;
}

char32_t JsonReader::escape_digits() {
  if (pos_ + 4 > text_.size()) fail("the end", "four hexadecimal digits");
  unsigned value = 0;
  const char* begin = text_.data() + pos_;
  const auto [end, error] = std::from_chars(begin, begin + 4, value, 16);
  if (error != std::errc() || end != begin + 4) {
    fail(in_quotes(text_.substr(pos_, 4)), "four hexadecimal digits");
  }
  pos_ += 4;
  return value;
}

void JsonReader::append_escape(std::string& out) {
  const char c = peek();
  pos_++;
  constexpr std::string_view kFrom = "\"\\/bfnrt";
  constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  if (c == 'u') {
    char32_t point = escape_digits();
    if (point >= 0xd800 && point < 0xdc00 && text_.substr(pos_, 2) == "\\u") {
      pos_ += 2;
      const char32_t low = escape_digits();
      if (low < 0xdc00 || low > 0xdfff) fail("half a surrogate pair", "both halves");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    if (point >= 0xd800 && point < 0xe000) fail("half a surrogate pair", "both halves");
    append_utf8(out, point);
  } else if (const std::size_t i = kFrom.find(c); i != std::string_view::npos) {
    out.push_back(kTo[i]);
  } else {
    pos_--;
    fail(shown_next(), "one of \" \\ / b f n r t u after a backslash");
  }
}

std::string JsonReader::string() {
  skip_space();
  if (peek() != '"') fail(shown_next(), "a string");
  pos_++;
  std::string out;
  while (true) {
    const std::size_t begin = pos_;
    while (pos_ < text_.size() && text_[pos_] != '"' && text_[pos_] != '\\' &&
           static_cast<unsigned char>(text_[pos_]) >= 0x20) {
      pos_++;
    }
    out.append(text_, begin, pos_ - begin);
    if (pos_ >= text_.size()) fail("the end", "a closing double quote");
    if (text_[pos_] == '"') break;
    if (text_[pos_] != '\\') fail(shown_next(), "no control characters in a string");
    pos_++;
    append_escape(out);
  }
  pos_++;
  return out;
}

JsonNumber JsonReader::number() {
  skip_space();
  const std::size_t begin = pos_;
  const auto digits = [&] {
    if (!is_digit(peek())) fail(shown_next(), "a digit");
    while (is_digit(peek())) pos_++;
  };
  if (peek() == '-') pos_++;
  if (peek() == '0') {
    pos_++;
  } else {
    digits();
  }
  if (peek() == '.') {
    pos_++;
    digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    pos_++;
    if (peek() == '+' || peek() == '-') pos_++;
    digits();
  }
  return {text_.substr(begin, pos_ - begin)};
}

void JsonReader::literal(std::string_view word) {
  skip_space();
  if (text_.substr(pos_, word.size()) != word) fail(shown_next(), std::string(word));
  pos_ += word.size();
}

bool JsonReader::boolean() {
  skip_space();
  const bool value = peek() == 't';
  literal(value ? "true" : "false");
  return value;
}

void JsonReader::null() {
  literal("null");
}

// A loop, not recursion: the nesting depth of the file does not use stack.
void JsonReader::skip() {
  const std::size_t outer = begun_.size();
  std::string key;
  do {
    if (begun_.size() > outer && !(is_object_.back() ? next_key(key) : next_item())) continue;
    switch (kind()) {
      case Kind::Object:
        enter_object();
        break;
      case Kind::Array:
        enter_array();
        break;
      case Kind::String:
        string();
        break;
      case Kind::Number:
        number();
        break;
      case Kind::Bool:
        boolean();
        break;
      case Kind::Null:
        null();
        break;
    }
  } while (begun_.size() > outer);
}

void JsonReader::end() {
  skip_space();
  if (pos_ < text_.size()) fail(shown_next(), "nothing after the JSON value");
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string Json::shown() const {
  if (kind == JsonReader::Kind::String) return in_quotes(text);
  if (kind == JsonReader::Kind::Number) return escaped(text);
  if (kind == JsonReader::Kind::Bool) return boolean ? "true" : "false";
  return name_of(kind);
}

namespace {

void refuse_duplicates(const Json& object, const JsonReader& reader) {
  std::vector<std::string_view> keys;
  keys.reserve(object.members.size());
  for (const auto& [name, value] : object.members) keys.push_back(name);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return;
  refuse(reader.file(), escaped(*twice), "the key twice (before " + reader.place() + ")",
         "every key once");
}

}  // namespace

Json read_json_value(JsonReader& reader) {  // the reader's depth limit bounds the recursion
  Json value;
  value.kind = reader.kind();
  switch (value.kind) {
    case JsonReader::Kind::Object: {
      reader.enter_object();
      std::string key;
      while (reader.next_key(key)) value.members.emplace_back(key, read_json_value(reader));
      refuse_duplicates(value, reader);
      break;
    }
    case JsonReader::Kind::Array:
      reader.enter_array();
      while (reader.next_item()) value.items.push_back(read_json_value(reader));
      break;
    case JsonReader::Kind::String:
      value.text = reader.string();
      break;
    case JsonReader::Kind::Number:
      value.text = reader.number().text;
      break;
    case JsonReader::Kind::Bool:
      value.boolean = reader.boolean();
      break;
    case JsonReader::Kind::Null:
      reader.null();
      break;
  }
  return value;
}

Json parse_json(std::string_view text, const std::string& file, std::int64_t max_depth) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  JsonReader reader(text, file, JsonReader::Places::LineAndColumn, 0, max_depth);
  Json value = read_json_value(reader);
  reader.end();
  return value;
}

Json read_json_file(const std::string& path, const FileLimits& limits) {
  const std::string text = read_text_file(path, static_cast<std::size_t>(limits.json_bytes));
  if (const std::string other = recognised_as(text); !other.empty())
    refuse(path, "file", other, "JSON");
  return parse_json(text, path, limits.json_depth);
}

Json read_json_input(const std::string& path, const FileLimits& limits) {
  const auto max_bytes = static_cast<std::uint64_t>(limits.json_bytes);
  return parse_json(read_text_input(path, Pipes::Read, max_bytes), input_name(path),
                    limits.json_depth);
}

}  // namespace engine
