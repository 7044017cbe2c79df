// Changes a text before it is split into words, as in Hugging Face's tokenizers library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/tokenizer/bpe/split_pattern.h"

namespace engine {

/// A normalisation form of the Unicode standard (annex 15).
struct UnicodeForm {
  bool compose = true, compatible = false;  // NFC; without compose NFD; with compatible NFKC, NFKD
};
/// Replaces each character by its lower case.
struct LowerCase {};
/// Puts `text` before each text that is not empty.
struct PrependText {
  std::string text;
};
/// Replaces each match by `content`.
struct ReplaceMatches {
  SplitPattern pattern;
  std::string content;
};

/// Steps in order.
class Normalizer {
 public:
  /// One step.
  using Step = std::variant<UnicodeForm, LowerCase, PrependText, ReplaceMatches>;

  /// Appends a step.
  void add(Step step) { steps_.push_back(std::move(step)); }
  /// True if this normaliser changes no text.
  bool empty() const { return steps_.empty(); }
  /// Applies all steps to `text` (UTF-8).
  /// @param continues  the text follows other text: nothing is prepended
  std::string apply(std::string text, bool continues) const;

 private:
  std::vector<Step> steps_;
};

/// Converts `text` (UTF-8) to a normalisation form in O(n log n) time, even if it consists of
/// combining marks.
std::string in_unicode_form(std::string_view text, UnicodeForm form);

}  // namespace engine
