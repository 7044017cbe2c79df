// A suffix automaton (Blumer et al. 1985) of one or more texts of tokens, built token by token: a
// compact form of their suffix trees. The strings that end at the same places share a state. The
// edges of a state are the tokens that followed its strings, with exact counts.
//   memory  at most two states and three edges per token: some 150 bytes
//   time    an append walks over the suffixes that occurred before: few in usual texts, as many as
//           the text has tokens if one token repeats
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/types.h"

namespace engine {

/// The texts, and what followed each of their substrings. States are numbered; 0 is the empty
/// string.
class SuffixAutomaton {
 public:
  SuffixAutomaton();

  /// Ends the current text: no string crosses the border between two texts.
  void begin_text() { last_ = 0; }
  /// Appends a token to the current text.
  void append(TokenId token);
  /// Number of appended tokens, over all texts.
  int n_tokens() const { return n_tokens_; }

  /// A state, and the length of the string that led to it. Length 0: no string matched.
  struct Match {
    int state = 0;
    int length = 0;
  };
  /// The longest suffix of `text` that occurs in the texts.
  Match longest_suffix(std::span<const TokenId> text) const;
  /// Appends `token` to the string of a match. Returns the longest suffix of the result that occurs in
  /// the texts.
  Match after(Match match, TokenId token) const;
  /// The longest suffix of the current text that occurs in another place too, if all texts before
  /// the current one are empty.
  Match repeated_suffix() const;

  /// The state after this token; -1: it never followed.
  int next(int state, TokenId token) const;
  /// Calls use(token, state) for each token that followed.
  template <typename Use>
  void for_each_next(int state, Use&& use) const {
    for (int e = at(state).first_edge; e >= 0; e = edges_[static_cast<std::size_t>(e)].sibling)
      use(edges_[static_cast<std::size_t>(e)].token, edges_[static_cast<std::size_t>(e)].to);
  }
  /// Number of occurrences of the state's strings.
  int count(int state) const { return at(state).count; }
  /// Length of the longest string of the state.
  int length(int state) const { return at(state).length; }
  /// The state of the longest suffix that has more occurrences; 0 for the empty string.
  int shorter(int state) const { return at(state).link; }
  /// Index of the last token of the newest occurrence, among all appended tokens.
  int newest(int state) const { return at(state).newest; }

 private:
  struct State {
    int length = 0;
    int link = 0;
    int count = 0;
    int newest = -1;
    int first_edge = -1;
  };
  struct Edge {
    TokenId token = 0;
    int from = 0, to = 0;
    int sibling = -1;  // the next edge of the same state
  };

  const State& at(int state) const { return states_[static_cast<std::size_t>(state)]; }
  State& at(int state) { return states_[static_cast<std::size_t>(state)]; }
  int add_state(int length);
  void add_edge(int from, TokenId token, int to);
  int find_edge(int state, TokenId token) const;
  std::size_t slot_of(int state, TokenId token) const;
  void grow_slots();
  int extend(TokenId token);
  int split(int from, TokenId token, int state);
  void count_occurrence(int state);

  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<int> slots_;  // hash table with linear probing: an edge's index, -1: free
  int last_ = 0;            // the state of the whole current text
  int n_tokens_ = 0;
};

}  // namespace engine
