// Tokens that are matched in a text before the tokenizer's model reads what stands between them, by
// the rules of Hugging Face's tokenizers library (AddedVocabulary). Knows no model: SentencePiece,
// byte-level and other tokenizers share it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/types.h"

namespace engine {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and the white space after it
  bool single_word = false;  // matched only where no word character stands beside it
  bool normalized = false;   // looked for in the normalised text; otherwise in the text as given
  bool special = false;      // a control symbol: it has a name, and gives no text
};

/// A stretch of a text: one added token, or text between them (never empty).
struct TextPart {
  std::optional<TokenId> id;
  std::string_view text;  // of the text that was split; with the white space the token took
};

class AddedTokens {
 public:
  enum class Of { GivenText, NormalizedText };

  AddedTokens() = default;
  /// @param tokens     with distinct ids and distinct contents
  /// @param normalize  what the tokenizer does to a text before it reads it, for the tokens that
  ///                   are looked for in the result. Or empty: it changes nothing
  explicit AddedTokens(std::vector<AddedToken> tokens,
                       const std::function<std::string(const std::string&)>& normalize = {});

  /// Splits `text` (borrowed) by the tokens that are looked for in texts of its kind: leftmost
  /// first, the longest of several at one place.
  /// @param special_as_text  control symbols are not looked for
  std::vector<TextPart> split(std::string_view text, Of kind, bool special_as_text) const;
  /// Whether any token is looked for in texts of this kind.
  bool any(Of kind) const { return !(kind == Of::GivenText ? given_ : normalized_).empty(); }
  /// By id, ascending.
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  struct Entry {
    std::string text;   // what is looked for
    std::size_t token;  // index in tokens_
  };
  struct Match {
    std::size_t token = 0, length = 0;  // bytes; 0: none
  };
  static Match longest_at(const std::vector<Entry>& entries, std::string_view text);

  std::vector<AddedToken> tokens_;
  std::vector<Entry> given_, normalized_;  // sorted by text
};

}  // namespace engine
