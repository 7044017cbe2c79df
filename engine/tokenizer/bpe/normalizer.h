// What happens to a text before it is split into words, as in Hugging Face's tokenizers library.
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
  bool compose = true, compatible = false;  // NFC; NFD, NFKC, NFKD
};
/// The lower case of each character.
struct LowerCase {};
/// A text before each stretch that is not empty.
struct PrependText {
  std::string text;
};
/// A replacement of each match.
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
  /// True if texts stay as they are.
  bool empty() const { return steps_.empty(); }
  /// `text` (UTF-8) after all steps.
  /// @param continues  the text follows other text: nothing is prepended
  std::string apply(std::string text, bool continues) const;

 private:
  std::vector<Step> steps_;
};

/// `text` (UTF-8) in a normalisation form. Needs time in proportion to the text, however many
/// combining marks follow each other.
std::string in_unicode_form(std::string_view text, UnicodeForm form);

}  // namespace engine
