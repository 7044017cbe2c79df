// The likeliest continuations of a sequence by the texts in which its end occurred (suffix with
// n_tokens=auto; our addition to arXiv:2411.04975).
//   candidates  after each node the tokens that followed its longest match in each text, and those that
//               only followed shorter suffixes of it
//   class       length of the match, share of the times that the token followed there, longest match or
//               a shorter one, the sequence itself or another text
#pragma once

#include <vector>

#include "engine/decode/control/likely_tree.h"
#include "engine/decode/guess/suffix_draft.h"
#include "engine/event/event.h"

namespace engine {

/// A text in which the end of the sequence is searched.
struct SearchedText {
  const SuffixAutomaton* index = nullptr;  // outlives its use
  SuffixAutomaton::Match match;            // of the sequence's end
  GuessSource::Kind kind = GuessSource::Kind::None;
};

/// A token that followed.
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
  /// @param shorter  the token only followed a shorter suffix than the longest match in its text
  static std::size_t category_of(
      int length, int n_seen, int n_context, bool shorter, GuessSource::Kind kind);
};

/// Grows the tree of the likeliest continuations.
/// @param limits  of them max_tokens, max_depth, min_p (of a path), chain and never are used
LikelyTree<SuffixToken> suffix_tree(const SuffixKnowledge& known,
                                    std::span<const SearchedText> texts,
                                    const SuffixDraftLimits& limits);

}  // namespace engine
