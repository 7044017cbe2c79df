// A draft of SuffixDecoding (arXiv:2411.04975): a tree of the tokens that most often followed the
// longest suffixes of a sequence.
#pragma once

#include <span>
#include <vector>

#include "engine/decode/guess/suffix_automaton.h"

namespace engine {

/// Limits of a draft.
struct SuffixDraftLimits {
  double factor = 1;               // alpha: tokens per token of the match
  int max_tokens = 8;              // of a draft
  int max_depth = 1 << 20;         // of its tree
  double min_p = 0.1;              // least estimated probability of a token
  bool chain = false;              // one continuation: the likeliest token after each token
  std::span<const TokenId> never;  // tokens that are not proposed (end tokens)
};

/// A proposed token.
struct SuffixDraftNode {
  TokenId token = 0;
  int parent = -1;                // an earlier node; -1: the token follows the sequence
  int state = 0;                  // of the string that ends with the token
  int n_seen = 0, n_context = 0;  // as in GuessSource
  double p = 0;                   // estimated probability that it is accepted
};

/// A tree in topological order.
struct SuffixDraft {
  std::vector<SuffixDraftNode> nodes;
  double score = 0;      // sum of p: the expected number of accepted tokens
  int match_length = 0;  // of the suffix that it continues
};

/// The tokens of each branch, from the sequence to a leaf; the one with the likeliest first token is
/// the first.
std::vector<std::vector<TokenId>> paths_of(const SuffixDraft& draft);

/// The end of a sequence that is searched in other texts: at most 64 tokens.
std::span<const TokenId> searched_end(std::span<const TokenId> tokens);

/// The draft with the highest score among those that continue the match or a shorter suffix of it.
/// Empty if nothing followed them.
SuffixDraft suffix_draft(const SuffixAutomaton& texts,
                         SuffixAutomaton::Match match,
                         const SuffixDraftLimits& limits);

}  // namespace engine
