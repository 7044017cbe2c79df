#include "engine/decode/guess/suffix_automaton.h"

#include <algorithm>

namespace engine {
namespace {

constexpr std::size_t kFirstSlots = 64;  // a power of two

std::size_t hash_of(int state, TokenId token) {
  auto x = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(state)) << 32) |
           static_cast<std::uint32_t>(token);
  x *= 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(x ^ (x >> 29));
}

}  // namespace

SuffixAutomaton::SuffixAutomaton() : states_(1), slots_(kFirstSlots, -1) {}

int SuffixAutomaton::add_state(int length) {
  states_.push_back({.length = length});
  return static_cast<int>(states_.size()) - 1;
}

/// The slot of this edge, or the free slot where it belongs.
std::size_t SuffixAutomaton::slot_of(int state, TokenId token) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash_of(state, token) & mask;; i = (i + 1) & mask) {
    if (slots_[i] < 0) return i;
    const Edge& edge = edges_[static_cast<std::size_t>(slots_[i])];
    if (edge.from == state && edge.token == token) return i;
  }
}

int SuffixAutomaton::find_edge(int state, TokenId token) const {
  return slots_[slot_of(state, token)];
}

void SuffixAutomaton::grow_slots() {
  slots_.assign(slots_.size() * 2, -1);
  for (std::size_t e = 0; e < edges_.size(); e++)
    slots_[slot_of(edges_[e].from, edges_[e].token)] = static_cast<int>(e);
}

void SuffixAutomaton::add_edge(int from, TokenId token, int to) {
  if (2 * (edges_.size() + 1) > slots_.size()) grow_slots();
  const auto index = static_cast<int>(edges_.size());
  slots_[slot_of(from, token)] = index;
  edges_.push_back({token, from, to, at(from).first_edge});
  at(from).first_edge = index;
}

int SuffixAutomaton::next(int state, TokenId token) const {
  const int edge = find_edge(state, token);
  return edge < 0 ? -1 : edges_[static_cast<std::size_t>(edge)].to;
}

/// Splits from `state` the strings that come from `from` and its suffixes: they now also end in a
/// place where the longer strings of `state` do not. @return  their new state
int SuffixAutomaton::split(int from, TokenId token, int state) {
  const int part = add_state(at(from).length + 1);
  at(part).link = at(state).link;
  at(part).count = at(state).count;
  at(part).newest = at(state).newest;
  std::vector<std::pair<TokenId, int>> copied;
  for_each_next(state, [&](TokenId next, int to) { copied.emplace_back(next, to); });
  for (auto one = copied.rbegin(); one != copied.rend(); ++one)
    add_edge(part, one->first, one->second);
  at(state).link = part;
  for (int s = from;; s = at(s).link) {
    const int edge = find_edge(s, token);
    if (edge < 0 || edges_[static_cast<std::size_t>(edge)].to != state) break;
    edges_[static_cast<std::size_t>(edge)].to = part;
    if (s == 0) break;
  }
  return part;
}

/// The state of the current text with the token appended.
int SuffixAutomaton::extend(TokenId token) {
  if (const int known = next(last_, token); known >= 0) {  // an earlier text has this beginning
    const bool own = at(known).length == at(last_).length + 1;
    return own ? known : split(last_, token, known);
  }
  const int whole = add_state(at(last_).length + 1);
  int s = last_;
  while (find_edge(s, token) < 0) {
    add_edge(s, token, whole);
    if (s == 0) return whole;
    s = at(s).link;
  }
  const int known = next(s, token);
  const bool own = at(known).length == at(s).length + 1;
  const int link = own ? known : split(s, token, known);
  at(whole).link = link;
  return whole;
}

void SuffixAutomaton::count_occurrence(int state) {
  for (int s = state; s != 0; s = at(s).link) {
    at(s).count++;
    at(s).newest = n_tokens_;
  }
}

void SuffixAutomaton::append(TokenId token) {
  last_ = extend(token);
  count_occurrence(last_);
  n_tokens_++;
}

SuffixAutomaton::Match SuffixAutomaton::longest_suffix(std::span<const TokenId> text) const {
  Match match;
  for (const TokenId token : text) match = after(match, token);
  return match;
}

SuffixAutomaton::Match SuffixAutomaton::after(Match match, TokenId token) const {
  int to = next(match.state, token);
  while (to < 0 && match.state != 0) {
    match.state = at(match.state).link;
    match.length = at(match.state).length;
    to = next(match.state, token);
  }
  return to < 0 ? Match() : Match{to, match.length + 1};
}

SuffixAutomaton::Match SuffixAutomaton::repeated_suffix() const {
  const int state = at(last_).link;
  return {state, at(state).length};
}

}  // namespace engine
