// Strings of a template as Python has them: sequences of code points that know which of them are
// the content of a message.
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

/// The code points of a string that outlives them.
std::vector<JinjaCharacter> characters_of(const jinja::string& text);
/// text[index]; undefined outside. A negative index counts from the end.
jinja::value character_at(const jinja::string& text, std::int64_t index);
/// list(text).
jinja::value list_of_characters(const jinja::string& text);
/// text[start:stop:step], with Python's rules for absent, negative and too large indices.
/// @throws jinja::raised_exception  for a step of 0
jinja::value slice_of(const jinja::string& text,
                      std::optional<std::int64_t> start,
                      std::optional<std::int64_t> stop,
                      std::optional<std::int64_t> step);
/// text.strip(), lstrip() or rstrip().
/// @param given  the characters to remove; none: white space as Python's str.isspace() has it
jinja::value stripped(const jinja::string& text, bool left, bool right, const jinja::value& given);
/// text.upper() or text.lower(), one character at a time.
jinja::value in_case(const jinja::string& text, bool upper);
/// text.split().
/// @param separator  none: runs of white space, none at the ends
/// @throws jinja::raised_exception  for an empty separator
jinja::value split_of(const jinja::string& text, const jinja::value& separator);
/// str(v), a string: None, True, 1.0, ['a', 1]. Of an undefined value: "".
jinja::value printed_value(const jinja::value& v);

}  // namespace engine
