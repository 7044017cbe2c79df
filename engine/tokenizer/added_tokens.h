// Added tokens. A tokenizer first finds its added tokens in a text, by the rules of Hugging Face's
// tokenizers library (AddedVocabulary), and then encodes the stretches between them with its model.
// This code does not depend on the model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// An added token with the flags of the tokenizers library.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool lstrip = false;       // the match includes the white space before it
  bool rstrip = false;       // the match includes the white space after it
  bool single_word = false;  // matches only if no word character is directly before or after it
  bool normalized = false;   // matched in the normalised text; otherwise in the text as given
  bool special = false;      // a control symbol: decodes to no text
};

/// A part of a text: one added token, or the text between two, which is never empty.
struct TextPart {
  std::optional<TokenId> id;  // nullopt: text
  // the bytes of this part; for a token including the white space that it matched
  std::string_view text;
};

/// The added tokens of one tokenizer.
class AddedTokens {
 public:
  /// The kind of text in which tokens are matched.
  enum class Of { GivenText, NormalizedText };

  /// No tokens.
  AddedTokens() = default;
  /// @param tokens     with distinct ids and distinct contents
  /// @param normalize  the tokenizer's normaliser; empty: none. It is applied to the content of
  ///                   each token that is matched in normalised text
  explicit AddedTokens(std::vector<AddedToken> tokens,
                       const std::function<std::string(const std::string&)>& normalize = {});

  /// Splits `text` (borrowed) by the tokens that match in texts of this kind: the leftmost match
  /// first, and of several matches at one place the longest.
  /// @param special_as_text  names of control symbols are plain text
  std::vector<TextPart> split(std::string_view text, Of kind, bool special_as_text) const;
  /// True if some token matches in texts of this kind.
  bool any(Of kind) const { return !(kind == Of::GivenText ? given_ : normalized_).empty(); }
  /// All tokens by ascending id.
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  struct Entry {
    std::string text;   // to match
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
