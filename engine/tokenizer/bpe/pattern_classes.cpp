#include "engine/tokenizer/bpe/pattern_classes.h"

#include <algorithm>
#include <iterator>

namespace engine {
namespace {

struct Category {
  std::string_view name;
  const char* added;  // the characters that Unicode 15 to 16 added, as PCRE2 writes them in a class
};

// Made by tests/fixtures/make_bpe_fixtures.py classes.
// clang-format off
constexpr Category kCategories[] = {
    {"Lu", R"(\x{1C89}\x{A7CB}-\x{A7CC}\x{A7DA}\x{A7DC}\x{10D50}-\x{10D65})"},
    {"Ll", R"(\x{1C8A}\x{A7CD}\x{A7DB}\x{10D70}-\x{10D85}\x{1DF25}-\x{1DF2A})"},
    {"Lm",
     R"(\x{10D4E}\x{10D6F}\x{16D40}-\x{16D42}\x{16D6B}-\x{16D6C}\x{1E030}-\x{1E06D}\x{1E4EB})"},
    {"Lo", R"(\x{105C0}-\x{105F3}\x{10D4A}-\x{10D4D}\x{10D4F}\x{10EC2}-\x{10EC4})"
           R"(\x{1123F}-\x{11240}\x{11380}-\x{11389}\x{1138B}\x{1138E}\x{11390}-\x{113B5}\x{113B7})"
           R"(\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10}\x{11F12}-\x{11F33})"
           R"(\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA}\x{16100}-\x{1611D})"
           R"(\x{16D43}-\x{16D6A}\x{18CFF}\x{1B132}\x{1B155}\x{1E4D0}-\x{1E4EA}\x{1E5D0}-\x{1E5ED})"
           R"(\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
    {"M", R"(\x{897}\x{CF3}\x{ECE}\x{10D69}-\x{10D6D}\x{10EFC}-\x{10EFF}\x{11241})"
          R"(\x{113B8}-\x{113C0}\x{113C2}\x{113C5}\x{113C7}-\x{113CA}\x{113CC}-\x{113D0}\x{113D2})"
          R"(\x{113E1}-\x{113E2}\x{11F00}-\x{11F01}\x{11F03}\x{11F34}-\x{11F3A})"
          R"(\x{11F3E}-\x{11F42}\x{11F5A}\x{13440}\x{13447}-\x{13455}\x{1611E}-\x{1612F}\x{1E08F})"
          R"(\x{1E4EC}-\x{1E4EF}\x{1E5EE}-\x{1E5EF})"},
    {"Nd", R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59})"
           R"(\x{16130}-\x{16139}\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1E4F0}-\x{1E4F9})"
           R"(\x{1E5F1}-\x{1E5FA})"},
    {"N", R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59})"
          R"(\x{16130}-\x{16139}\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3})"
          R"(\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})"},
    {"P", R"(\x{1B4E}-\x{1B4F}\x{1B7F}\x{10D6E}\x{113D4}-\x{113D5}\x{113D7}-\x{113D8})"
          R"(\x{11B00}-\x{11B09}\x{11BE1}\x{11F43}-\x{11F4F}\x{16D6D}-\x{16D6F}\x{1E5FF})"},
    {"S", R"(\x{2427}-\x{2429}\x{2FFC}-\x{2FFF}\x{31E4}-\x{31E5}\x{31EF}\x{10D8E}-\x{10D8F})"
          R"(\x{1CC00}-\x{1CCEF}\x{1CD00}-\x{1CEB3}\x{1F6DC}\x{1F774}-\x{1F776})"
          R"(\x{1F77B}-\x{1F77F}\x{1F7D9}\x{1F8B2}-\x{1F8BB}\x{1F8C0}-\x{1F8C1})"
          R"(\x{1FA75}-\x{1FA77}\x{1FA87}-\x{1FA89}\x{1FA8F}\x{1FAAD}-\x{1FAAF})"
          R"(\x{1FABB}-\x{1FABF}\x{1FAC6}\x{1FACE}-\x{1FACF}\x{1FADA}-\x{1FADC}\x{1FADF})"
          R"(\x{1FAE8}-\x{1FAE9}\x{1FAF7}-\x{1FAF8}\x{1FBCB}-\x{1FBEF})"},
    {"Han", R"(\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
};
// clang-format on

/// The property White_Space, which is `\s` in Oniguruma and in Rust's regex crate. PCRE2's `\s`
/// also has U+180E.
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

/// Finds the characters that Unicode 15 to 16 added to a category ("Lu") or a group of categories
/// ("L").
std::string added_to(std::string_view name) {
  std::string added;
  for (const Category& category : kCategories) {
    const bool is_part = name == "L" && category.name.size() == 2 && category.name.starts_with('L');
    if (category.name == name || is_part) added += category.added;
  }
  return added;
}

/// Reads the name from a `\p{Lu}` or `\pL` at the start of `text`.
std::string_view category_name(std::string_view text) {
  if (text.size() < 3) return {};
  if (text[2] != '{') return text.substr(2, 1);
  const std::size_t end = text.find('}');
  return end == std::string_view::npos ? std::string_view{} : text.substr(3, end - 3);
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : rest_(pattern) {}

  std::optional<std::string> translate() {
    while (!rest_.empty()) {
      if (rest_.starts_with('\\')) {
        escape();
      } else if (in_class_ && (rest_.starts_with('[') || rest_.starts_with("&&"))) {
        return std::nullopt;
      } else if (rest_.starts_with('[')) {
        enter_class();
      } else {
        if (rest_.starts_with(']')) in_class_ = false;
        take(1);
      }
    }
    return std::move(out_);
  }

 private:
  /// A ']' that is the first member does not end the class.
  void enter_class() {
    std::size_t n = 1;
    if (rest_.substr(n).starts_with('^')) n++;
    if (rest_.substr(n).starts_with(']')) n++;
    take(n);
    in_class_ = true;
  }

  void take(std::size_t n) {
    out_ += rest_.substr(0, n);
    rest_.remove_prefix(std::min(n, rest_.size()));
  }

  /// Replaces the first `n` bytes of the pattern by characters: as members of the open class, or as
  /// a new class.
  void put(std::size_t n, const std::string& members, bool is_negated) {
    out_ += in_class_ ? members : (is_negated ? "[^" : "[") + members + "]";
    rest_.remove_prefix(n);
  }

  void escape() {
    const char letter = rest_.size() > 1 ? rest_[1] : '\0';
    const bool is_negated = letter == 'S' || letter == 'P';
    if (is_negated && in_class_)
      return take(2);  // a class cannot contain the complement of a list of characters
    if (letter == 's' || letter == 'S') return put(2, std::string(kWhiteSpace), is_negated);
    if (letter == 'd') return put(2, R"(\p{Nd})" + added_to("Nd"), false);
    if (letter != 'p' && letter != 'P') return take(2);
    const std::string_view name = category_name(rest_);
    const std::string added = added_to(name);
    if (added.empty()) return take(2);
    const std::size_t length = name.size() + (rest_[2] == '{' ? 4 : 2);
    put(length, R"(\p{)" + std::string(name) + "}" + added, is_negated);
  }

  std::string_view rest_;
  std::string out_;
  bool in_class_ = false;
};

}  // namespace

std::optional<std::string> pcre_pattern(std::string_view pattern) {
  return Translator(pattern).translate();
}

}  // namespace engine
