// Finds the matches of a pattern in a text and splits the text at them, by the rules of Hugging
// Face's tokenizers library (NormalizedString::split). Patterns run on PCRE2 with limits, because
// they come from untrusted files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace engine {

/// What to do with the matches when a text is split.
enum class SplitBehaviour : std::uint8_t {
  Removed,             // no piece contains them
  Isolated,            // each is a piece
  MergedWithPrevious,  // each joins the piece before it
  MergedWithNext,      // each joins the piece after it
  Contiguous,          // a run of them is one piece
};

/// A compiled pattern. Copies share the compiled code. Several threads may match at the same time.
class SplitPattern {
 public:
  /// The place of a pattern in its file, for error messages.
  struct Origin {
    std::string file, field;
  };

  /// Compiles a regular expression of tokenizers or tiktoken (pattern_classes.h).
  /// @throws Error(BadInput)  for a pattern that PCRE2 or pcre_pattern() does not support, or one
  ///                          of more than 64 KB
  static SplitPattern regex(std::string_view pattern, Origin origin);
  /// A pattern that matches `text` itself.
  /// @throws Error(BadInput)  for an empty text, or one of more than 64 KB
  static SplitPattern literal(std::string_view text, Origin origin);

  /// Splits `text` and appends the pieces, which are views of it and never empty.
  /// @param text     UTF-8
  /// @param inverts  swaps the roles of matches and of the text between them
  /// @throws Error(BadInput)  if matching needs too many steps or too much time
  void split(std::string_view text,
             SplitBehaviour behaviour,
             bool inverts,
             std::vector<std::string_view>& pieces) const;

  /// Replaces each match in `text`. Throws like split().
  std::string replaced(std::string_view text, std::string_view replacement) const;

 private:
  struct Span {
    std::size_t begin, end;
    bool is_match;
  };

  SplitPattern(std::string_view pattern, std::uint32_t options, Origin origin);
  bool match_from(std::string_view text, std::size_t from, Span& match) const;
  std::vector<Span> spans(std::string_view text) const;
  [[noreturn]] void fail(const std::string& reason) const;

  std::shared_ptr<const pcre2_real_code_8> code_;
  std::shared_ptr<const Origin> origin_;
};

}  // namespace engine
