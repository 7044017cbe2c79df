#include "engine/chat/jinja_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "jinja/runtime.h"

namespace engine {
namespace {

using jinja::is_val;
using jinja::mk_val;
using jinja::value;

using Characters = std::span<const JinjaCharacter>;

value string_of(Characters characters) {
  auto result = mk_val<jinja::value_string>();
  std::vector<jinja::string_part>& parts = result->val_str.parts;
  for (const JinjaCharacter& c : characters) {
    if (parts.empty() || parts.back().is_input != c.is_content)
      parts.push_back({c.is_content, std::string()});
    parts.back().val += c.bytes;
  }
  return result;
}

/// True for white space as defined by Python's str.isspace(): bidirectional types WS, B and S, and
/// category Zs.
bool is_space(std::string_view character) {
  constexpr std::array<std::pair<char32_t, char32_t>, 10> kSpaces = {{{9, 13},
                                                                      {28, 32},
                                                                      {0x85, 0x85},
                                                                      {0xA0, 0xA0},
                                                                      {0x1680, 0x1680},
                                                                      {0x2000, 0x200A},
                                                                      {0x2028, 0x2029},
                                                                      {0x202F, 0x202F},
                                                                      {0x205F, 0x205F},
                                                                      {0x3000, 0x3000}}};
  const Utf8Char c = utf8_at(character, 0);
  return c.state == Utf8Char::Valid && std::ranges::any_of(kSpaces, [&](const auto& range) {
           return c.code_point >= range.first && c.code_point <= range.second;
         });
}

/// Index of the first occurrence of `separator` at or after `begin`; characters.size() if there is
/// none.
std::size_t find_in(Characters characters, Characters separator, std::size_t begin) {
  const auto same = [](const JinjaCharacter& a, const JinjaCharacter& b) {
    return a.bytes == b.bytes;
  };
  const auto at = std::search(characters.begin() + static_cast<std::ptrdiff_t>(begin),
                              characters.end(), separator.begin(), separator.end(), same);
  return static_cast<std::size_t>(at - characters.begin());
}

value split_at(Characters characters, Characters separator) {
  if (separator.empty()) throw jinja::raised_exception("empty separator");
  auto list = mk_val<jinja::value_array>();
  for (std::size_t begin = 0;;) {
    const std::size_t end = find_in(characters, separator, begin);
    list->push_back(string_of(characters.subspan(begin, end - begin)));
    if (end == characters.size()) return list;
    begin = end + separator.size();
  }
}

value split_at_spaces(Characters characters) {
  auto list = mk_val<jinja::value_array>();
  for (std::size_t i = 0; i < characters.size();) {
    std::size_t end = i;
    while (end < characters.size() && !is_space(characters[end].bytes)) end++;
    if (end > i) list->push_back(string_of(characters.subspan(i, end - i)));
    i = end + 1;
  }
  return list;
}

/// Quotes a string as Python's repr() does, but escapes only control characters, no other
/// unprintable ones.
std::string quoted(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + quote;
}

/// Formats a float with the fewest digits from which it can be parsed exactly.
std::string float_text(double number) {
  std::string text = fmt::format("{}", number);
  if (std::isfinite(number) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string repr(const value& v);

std::string list_repr(const value& v) {
  const bool is_tuple = is_val<jinja::value_tuple>(v);
  std::string out(1, is_tuple ? '(' : '[');
  const auto& items = v->as_array();
  for (std::size_t i = 0; i < items.size(); i++) out += (i > 0 ? ", " : "") + repr(items[i]);
  if (is_tuple && items.size() == 1) out += ',';
  return out + (is_tuple ? ')' : ']');
}

std::string object_repr(const value& v) {
  std::string out = "{";
  for (const auto& [key, item] : v->as_ordered_object())
    out += (out.size() > 1 ? ", " : "") + repr(key) + ": " + repr(item);
  return out + "}";
}

std::string repr(const value& v) {
  if (v->is_none()) return "None";
  if (v->is_undefined()) return "Undefined";
  if (is_val<jinja::value_string>(v)) return quoted(v->val_str.str());
  if (is_val<jinja::value_array>(v)) return list_repr(v);
  if (is_val<jinja::value_object>(v)) return object_repr(v);
  if (is_val<jinja::value_float>(v)) return float_text(v->as_float());
  return is_val<jinja::value_func>(v) ? v->as_repr() : v->as_string().str();
}

}  // namespace

std::vector<JinjaCharacter> characters_of(const jinja::string& text) {
  std::vector<JinjaCharacter> characters;
  for (const jinja::string_part& part : text.parts) {
    const std::string_view bytes = part.val;
    for (std::size_t i = 0; i < bytes.size();) {
      const auto length = static_cast<std::size_t>(utf8_at(bytes, i).length);
      characters.push_back({bytes.substr(i, length), part.is_input});
      i += length;
    }
  }
  return characters;
}

value character_at(const jinja::string& text, std::int64_t index) {
  const auto characters = characters_of(text);
  const auto n = static_cast<std::int64_t>(characters.size());
  if (index < 0) index += n;
  if (index < 0 || index >= n) return mk_val<jinja::value_undefined>("index");
  return string_of(Characters(characters).subspan(static_cast<std::size_t>(index), 1));
}

value list_of_characters(const jinja::string& text) {
  auto list = mk_val<jinja::value_array>();
  const auto characters = characters_of(text);
  for (std::size_t i = 0; i < characters.size(); i++)
    list->push_back(string_of(Characters(characters).subspan(i, 1)));
  return list;
}

value slice_of(const jinja::string& text,
               std::optional<std::int64_t> start,
               std::optional<std::int64_t> stop,
               std::optional<std::int64_t> step) {
  const auto characters = characters_of(text);
  const auto n = static_cast<std::int64_t>(characters.size());
  const std::int64_t by = std::clamp<std::int64_t>(step.value_or(1), -n - 1, n + 1);
  if (by == 0) throw jinja::raised_exception("slice step cannot be zero");
  const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
  const auto place = [&](std::optional<std::int64_t> at, std::int64_t fallback) {
    if (!at) return fallback;
    return std::clamp(*at < 0 ? std::max(*at, -n - 1) + n : *at, low, high);
  };
  const std::int64_t end = place(stop, by > 0 ? n : -1);
  std::vector<JinjaCharacter> chosen;
  for (std::int64_t i = place(start, by > 0 ? 0 : n - 1); by > 0 ? i < end : i > end; i += by)
    chosen.push_back(characters[static_cast<std::size_t>(i)]);
  return string_of(chosen);
}

value stripped(const jinja::string& text, bool left, bool right, const value& given) {
  const auto all = characters_of(text);
  const bool spaces = given->is_none() || given->is_undefined();
  const jinja::string set = spaces ? jinja::string() : given->as_string();
  const auto removed = characters_of(set);
  const auto goes = [&](const JinjaCharacter& c) {
    return spaces ? is_space(c.bytes)
                  : std::ranges::any_of(removed, [&](const auto& r) { return r.bytes == c.bytes; });
  };
  Characters rest(all);
  while (left && !rest.empty() && goes(rest.front())) rest = rest.subspan(1);
  while (right && !rest.empty() && goes(rest.back())) rest = rest.first(rest.size() - 1);
  return string_of(rest);
}

value in_case(const jinja::string& text, bool upper) {
  auto result = mk_val<jinja::value_string>();
  for (const jinja::string_part& part : text.parts) {
    std::string changed;
    for (std::size_t i = 0; i < part.val.size();) {
      const Utf8Char c = utf8_at(part.val, i);
      if (c.state != Utf8Char::Valid) {
        changed += part.val[i];
      } else if (upper && c.code_point == U'\u00DF') {
        changed += "SS";
      } else {
        const auto point = static_cast<utf8proc_int32_t>(c.code_point);
        append_utf8(changed, static_cast<char32_t>(upper ? utf8proc_toupper(point)
                                                         : utf8proc_tolower(point)));
      }
      i += static_cast<std::size_t>(c.length);
    }
    result->val_str.parts.push_back({part.is_input, std::move(changed)});
  }
  return result;
}

value split_of(const jinja::string& text, const value& separator) {
  const auto characters = characters_of(text);
  if (separator->is_none() || separator->is_undefined()) return split_at_spaces(characters);
  const jinja::string given = separator->as_string();
  return split_at(characters, characters_of(given));
}

value printed_value(const value& v) {
  if (is_val<jinja::value_string>(v)) return v;
  return mk_val<jinja::value_string>(v->is_undefined() ? std::string() : repr(v));
}

}  // namespace engine
