// String operations with Python's semantics: strings are sequences of code points. Each code point
// is marked as part of a message's content or not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace engine {

/// One code point of a string. A byte that is not UTF-8 counts as one.
struct JinjaCharacter {
  std::string_view bytes;  // in the string
  bool is_content = false;
};

/// The code points of a string. They borrow from it.
std::vector<JinjaCharacter> characters_of(const jinja::string& text);
/// text[index]; undefined outside. A negative index counts from the end.
jinja::value character_at(const jinja::string& text, std::int64_t index);
/// list(text).
jinja::value list_of_characters(const jinja::string& text);
/// text[start:stop:step]. Absent, negative and too large indices follow Python's rules.
/// @throws jinja::raised_exception  for a step of 0
jinja::value slice_of(const jinja::string& text,
                      std::optional<std::int64_t> start,
                      std::optional<std::int64_t> stop,
                      std::optional<std::int64_t> step);
/// text.strip(), lstrip() or rstrip().
/// @param given  the characters to remove; none: white space as in Python's str.isspace()
jinja::value stripped(const jinja::string& text, bool left, bool right, const jinja::value& given);
/// text.upper() or text.lower(), one character at a time.
jinja::value in_case(const jinja::string& text, bool upper);
/// text.split().
/// @param separator  none: splits at runs of white space and ignores those at the ends
/// @throws jinja::raised_exception  for an empty separator
jinja::value split_of(const jinja::string& text, const jinja::value& separator);
/// The text of a value as Python's str() writes it: None, True, 1.0, ['a', 1]. An undefined value
/// gives "".
jinja::value printed_value(const jinja::value& v);

}  // namespace engine
