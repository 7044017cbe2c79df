#include "engine/chat/jinja_source.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "engine/base/utf8.h"
#include "jinja/lexer.h"

namespace engine {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

/// Reads a text from left to right.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ >= text_.size(); }
  std::string_view rest() const { return text_.substr(at_); }
  bool sees(std::string_view word) const { return rest().starts_with(word); }
  char next() { return text_[at_++]; }
  std::string_view take(std::size_t n) {
    const std::string_view taken = rest().substr(0, n);
    at_ += taken.size();
    return taken;
  }
  bool take(std::string_view word) {
    if (!sees(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_spaces() {
    while (!at_end() && kSpaces.find(text_[at_]) != std::string_view::npos) at_++;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// ---- strings

/// A character in a string literal, as the lexer reads it.
std::string in_literal(char32_t c) {
  constexpr std::string_view kEscaped = "\n\r\\'\"", kLetters = "nr\\'\"";
  if (c < 128)
    if (const auto i = kEscaped.find(static_cast<char>(c)); i != std::string_view::npos)
      return {'\\', kLetters[i]};
  std::string out;
  append_utf8(out, c);
  return out;
}

std::string in_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '\'') out += '\\';
    out += c;
  }
  return out;
}

/// The scalar value that a number in `digits` of a base means; nullopt if it is none.
std::optional<char32_t> scalar_of(std::string_view digits, int base) {
  std::uint32_t c = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), c, base);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  const bool is_surrogate = c >= 0xD800 && c < 0xE000;
  if (!is_number || is_surrogate || c > 0x10FFFF) return std::nullopt;
  return c;
}

/// The number of hexadecimal digits after \x, \u or \U; 0 for another letter.
std::size_t n_digits_after(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

/// The escape after a backslash, in the lexer's words.
std::string taken_escape(Scanner& in) {
  constexpr std::string_view kKnown = "ntrbfv\\'\"";
  if (in.at_end()) return "\\";
  if (kKnown.find(in.rest().front()) != std::string_view::npos) return {'\\', in.next()};
  if (in.take("a")) return "\a";
  if (in.sees("\n") || in.sees("N")) return "\\";  // refused by the lexer
  if (const std::size_t n = n_digits_after(in.rest().front()); n > 0) {
    const std::string_view digits = in.rest().substr(1, n);
    const auto c = digits.size() == n ? scalar_of(digits, 16) : std::nullopt;
    if (!c) return "\\";
    in.take(n + 1);
    return in_literal(*c);
  }
  std::size_t n_octal = 0;
  while (n_octal < 3 && n_octal < in.rest().size() && in.rest()[n_octal] >= '0' &&
         in.rest()[n_octal] <= '7')
    n_octal++;
  if (n_octal > 0) return in_literal(*scalar_of(in.take(n_octal), 8));
  return "\\\\";
}

/// A string literal up to its closing quote.
std::string taken_literal(Scanner& in) {
  const char quote = in.next();
  std::string out(1, quote);
  while (!in.at_end()) {
    const char c = in.next();
    out += c == '\\' ? taken_escape(in) : std::string(1, c);
    if (c == quote) break;
  }
  return out;
}

/// An expression or statement up to its end.
std::string taken_block(Scanner& in) {
  const bool is_expression = in.sees("{{");
  std::string out(in.take(2));
  for (int depth = 0; !in.at_end();) {
    const char c = in.rest().front();
    if (c == '\'' || c == '"') {
      out += taken_literal(in);
      continue;
    }
    if (is_expression ? depth == 0 && in.sees("}}") : in.sees("%}")) return out.append(in.take(2));
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    out += in.next();
  }
  return out;
}

// ---- raw

/// A statement that is a single word: its signs of white space, "-" or "", before and after the word.
struct WordStatement {
  std::string before, after;
};

/// Takes {% word %} if it is there.
std::optional<WordStatement> taken_word(Scanner& in, std::string_view word) {
  Scanner ahead = in;
  WordStatement found;
  if (!ahead.take("{%")) return std::nullopt;
  if (ahead.take("-")) found.before = "-";
  ahead.skip_spaces();
  if (!ahead.take(word)) return std::nullopt;
  ahead.skip_spaces();
  if (ahead.take("-")) found.after = "-";
  if (!ahead.take("%}")) return std::nullopt;
  in = ahead;
  return found;
}

/// The text before {% endraw %}: without white space if that has a "-", else without what precedes it on its line if
/// that is white space.
std::string_view before_end(std::string_view text, const WordStatement& end) {
  const std::size_t last = text.find_last_not_of(end.before.empty() ? " \t" : kSpaces);
  const std::size_t kept = last == std::string_view::npos ? 0 : last + 1;
  if (!end.before.empty()) return text.substr(0, kept);
  return kept > 0 && text[kept - 1] == '\n' ? text.substr(0, kept) : text;
}

/// Takes a raw part and returns it as a string; nullopt if none begins here or it does not end.
std::optional<std::string> taken_raw(Scanner& in) {
  Scanner ahead = in;
  const auto begin = taken_word(ahead, "raw");
  if (!begin) return std::nullopt;
  const std::string_view text = ahead.rest();
  while (!ahead.at_end()) {
    const std::size_t n = text.size() - ahead.rest().size();
    if (const auto end = taken_word(ahead, "endraw")) {
      std::string_view raw = text.substr(0, n);
      if (!begin->after.empty())
        raw.remove_prefix(std::min(raw.find_first_not_of(kSpaces), raw.size()));
      in = ahead;
      return "{%" + begin->before + " if true %}{{ '" + in_literal(before_end(raw, *end)) +
             "' }}{% endif " + end->after + "%}";
    }
    ahead.next();
  }
  return std::nullopt;
}

/// A comment up to its end.
std::string_view taken_comment(Scanner& in) {
  const std::size_t end = in.rest().find("#}", 2);
  return in.take(end == std::string_view::npos ? end : end + 2);
}

}  // namespace

std::string with_known_syntax(const std::string& text) {
  Scanner in(text);
  std::string out;
  while (!in.at_end()) {
    if (in.sees("{#")) {
      out += taken_comment(in);
    } else if (auto raw = taken_raw(in)) {
      out += *raw;
    } else if (in.sees("{{") || in.sees("{%")) {
      out += taken_block(in);
    } else {
      out += in.next();
    }
  }
  return out;
}

void join_floor_divisions(jinja::lexer_result& lexed) {
  std::vector<jinja::token> joined;
  for (jinja::token& token : lexed.tokens) {
    const bool continues = token.t == jinja::token::multiplicative_binary_operator &&
                           token.value == "/" && !joined.empty() && joined.back().value == "/" &&
                           joined.back().t == token.t && joined.back().pos + 1 == token.pos;
    if (continues)
      joined.back().value = "//";
    else
      joined.push_back(std::move(token));
  }
  lexed.tokens = std::move(joined);
}

}  // namespace engine
