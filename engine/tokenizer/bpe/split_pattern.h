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

/// What happens to the matches.
enum class SplitBehaviour : std::uint8_t {
  Removed,             // no piece contains them
  Isolated,            // each is a piece
  MergedWithPrevious,  // each joins the piece before it
  MergedWithNext,      // each joins the piece after it
  Contiguous,          // a run of them is one piece
};

/// A compiled pattern. Copies share it; matching is safe from several threads.
class SplitPattern {
 public:
  /// Where a pattern comes from, for messages.
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

  /// Appends the pieces of `text`, which are not empty and point into it.
  /// @param text     UTF-8
  /// @param inverts  swaps matches and the text between them
  /// @throws Error(BadInput)  if matching needs too many steps or too much time
  void split(std::string_view text,
             SplitBehaviour behaviour,
             bool inverts,
             std::vector<std::string_view>& pieces) const;

  /// `text` with each match replaced. Throws as split().
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
