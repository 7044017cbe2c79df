#include "engine/tokenizer/bpe/normalizer.h"

#include <algorithm>
#include <array>

#include <utf8proc.h>

#include "engine/base/types.h"
#include "engine/base/utf8.h"

namespace engine {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

/// Decomposes the characters of a text without ordering the combining marks.
std::vector<utf8proc_int32_t> decomposed(std::string_view text, bool compatible) {
  const int options = UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_at(text, i);
    std::array<utf8proc_int32_t, 32> parts{};  // the longest decomposition has 18 code points
    int boundary = 0;
    const auto n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), parts.data(),
                                parts.size(), static_cast<utf8proc_option_t>(options), &boundary);
    ensure(n >= 0 && n <= static_cast<utf8proc_ssize_t>(parts.size()), "in_unicode_form: UTF-8");
    out.insert(out.end(), parts.begin(), parts.begin() + n);
    i += static_cast<std::size_t>(c.length);
  }
  return out;
}

// Applies the canonical ordering algorithm. utf8proc_decompose() does it in quadratic time.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  for (auto i = text.begin(); i != text.end();) {
    i = std::find_if_not(i, text.end(), is_starter);
    const auto end = std::find_if(i, text.end(), is_starter);
    std::ranges::stable_sort(i, end, {}, combining_class);
    i = end;
  }
}

std::string lower_case(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_at(text, i);
    i += static_cast<std::size_t>(c.length);
    if (c.code_point == 0x130) {  // the only character whose lower case has two code points
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<char32_t>(
                           utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point))));
    }
  }
  return out;
}

}  // namespace

std::string in_unicode_form(std::string_view text, UnicodeForm form) {
  if (is_ascii(text)) return std::string(text);
  std::vector<utf8proc_int32_t> points = decomposed(text, form.compatible);
  order_marks(points);
  std::size_t n = points.size();
  if (form.compose) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    n = static_cast<std::size_t>(utf8proc_normalize_utf32(
        points.data(), static_cast<utf8proc_ssize_t>(points.size()), options));
  }
  std::string out;
  for (std::size_t i = 0; i < n; i++) append_utf8(out, static_cast<char32_t>(points[i]));
  return out;
}

std::string Normalizer::apply(std::string text, bool continues) const {
  for (const Step& step : steps_) {
    if (const auto* form = std::get_if<UnicodeForm>(&step)) {
      text = in_unicode_form(text, *form);
    } else if (std::holds_alternative<LowerCase>(step)) {
      text = lower_case(text);
    } else if (const auto* prepend = std::get_if<PrependText>(&step)) {
      if (!text.empty() && !continues) text.insert(0, prepend->text);
    } else {
      const auto& replace = std::get<ReplaceMatches>(step);
      text = replace.pattern.replaced(text, replace.content);
    }
  }
  return text;
}

}  // namespace engine
