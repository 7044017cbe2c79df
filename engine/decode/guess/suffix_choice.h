// The likeliest continuations of a sequence by the texts in which its end occurred (suffix with
// n_tokens=auto; our addition to arXiv:2411.04975).
//   candidates  after each node the tokens that followed its longest match in each text, and those that
//               followed only shorter suffixes of that match
//   class       length of the match, share of its occurrences that the token followed, longest match or
//               a shorter one, the sequence itself or another text
#pragma once

#include <vector>

#include "engine/decode/control/likely_tree.h"
#include "engine/decode/guess/suffix_draft.h"
#include "engine/event/event.h"

namespace engine {

/// A text in which a suffix of the sequence is searched.
struct SearchedText {
  const SuffixAutomaton* index = nullptr;  // not owned
  SuffixAutomaton::Match match;            // the sequence's longest suffix in it
  GuessSource::Kind kind = GuessSource::Kind::None;
};

/// A token that followed a match.
struct SuffixToken : LikelyToken {
  std::size_t text = 0;           // index of the SearchedText
  int state = 0;                  // of the string that ends with the token
  int n_seen = 0, n_context = 0;  // as in GuessSource
};

/// Statistics about the success of continuations.
struct SuffixKnowledge final : LikelyKnowledge {
  SuffixKnowledge();
  /// The class of a candidate.
  /// @param length   of the match
  /// @param shorter  true if the token followed only a shorter suffix than the longest match in its text
  static std::size_t category_of(
      int length, int n_seen, int n_context, bool shorter, GuessSource::Kind kind);
};

/// Grows the tree of the likeliest continuations.
/// @param limits  factor is not used; min_p is the least probability of a path
LikelyTree<SuffixToken> suffix_tree(const SuffixKnowledge& known,
                                    std::span<const SearchedText> texts,
                                    const SuffixDraftLimits& limits);

}  // namespace engine
