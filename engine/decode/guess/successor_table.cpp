#include "engine/decode/guess/successor_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace engine {
namespace {

constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

std::uint64_t key_of(TokenId before, TokenId token) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(before)) << 32 |
         static_cast<std::uint32_t>(token);
}

/// The entries before the first -1.
std::span<const TokenId> known(std::span<const TokenId> list) {
  return list.first(static_cast<std::size_t>(std::ranges::find(list, -1) - list.begin()));
}

/// Writes the first of `from` to `to` and -1 after them.
void fill(std::span<TokenId> to, std::span<const TokenId> from) {
  const auto end = std::ranges::copy(from.first(std::min(from.size(), to.size())), to.begin()).out;
  std::fill(end, to.end(), -1);
}

}  // namespace

SuccessorTable::SuccessorTable(int vocab_size, int k, int n_pairs)
    : k_(k),
      of_token_(static_cast<std::size_t>(vocab_size) * static_cast<std::size_t>(k), -1),
      pairs_(static_cast<std::size_t>(n_pairs), kNoPair),
      of_pair_(pairs_.size() * static_cast<std::size_t>(k), -1),
      sure_of_token_(static_cast<std::size_t>(vocab_size)),
      sure_of_pair_(pairs_.size()) {
  ensure(k >= 1 && n_pairs >= 0 && (n_pairs == 0 || std::has_single_bit(pairs_.size())),
         "a table of successors needs k of at least 1 and 0 or a power of two pairs");
}

// Multiplicative hashing: the product's highest bits depend on all bits of the key.
std::size_t SuccessorTable::place_of(TokenId before, TokenId token) const {
  const int bits = std::countr_zero(pairs_.size());
  if (bits == 0) return 0;
  return static_cast<std::size_t>(key_of(before, token) * 0x9e3779b97f4a7c15u >> (64 - bits));
}

std::span<const TokenId> SuccessorTable::of(TokenId before, TokenId token) const {
  const Successors pair = of_pair(before, token);
  return pair.tokens.empty() ? of_token(token).tokens : pair.tokens;
}

Successors SuccessorTable::of_token(TokenId token) const {
  const auto width = static_cast<std::size_t>(k_), at = static_cast<std::size_t>(token);
  return {known(std::span(of_token_).subspan(at * width, width)), sure_of_token_[at]};
}

Successors SuccessorTable::of_pair(TokenId before, TokenId token) const {
  if (before < 0 || pairs_.empty()) return {};
  const auto width = static_cast<std::size_t>(k_), place = place_of(before, token);
  if (pairs_[place] != key_of(before, token)) return {};
  return {known(std::span(of_pair_).subspan(place * width, width)), sure_of_pair_[place]};
}

SuccessorTable::List SuccessorTable::list_of(TokenId token) {
  const auto width = static_cast<std::size_t>(k_), at = static_cast<std::size_t>(token);
  return {std::span(of_token_).subspan(at * width, width), sure_of_token_[at]};
}

/// The memory of the pair's list, which is empty if the place held another pair.
std::optional<SuccessorTable::List> SuccessorTable::list_of(TokenId before, TokenId token) {
  if (before < 0 || pairs_.empty()) return std::nullopt;
  const auto width = static_cast<std::size_t>(k_), place = place_of(before, token);
  const List list{std::span(of_pair_).subspan(place * width, width), sure_of_pair_[place]};
  if (std::exchange(pairs_[place], key_of(before, token)) != key_of(before, token))
    std::ranges::fill(list.tokens, -1);
  return list;
}

void SuccessorTable::set(TokenId before,
                         TokenId token,
                         std::span<const TokenId> successors,
                         Sureness sure) {
  const auto write = [&](const List& list) {
    fill(list.tokens, known(successors));
    list.sure = sure;
  };
  const List own = list_of(token);
  n_tokens_ += own.tokens[0] < 0 && !known(successors).empty();
  write(own);
  if (const auto pair = list_of(before, token)) write(*pair);
}

void SuccessorTable::observe(TokenId before, TokenId token, TokenId next) {
  const auto move_to_front = [next](const List& list) {
    const auto end = std::ranges::find(list.tokens, next);
    const auto last = end == list.tokens.end() ? end - 1 : end;
    std::shift_right(list.tokens.begin(), last + 1, 1);
    list.tokens[0] = next;
    list.sure = Sureness::Seen;
  };
  const List own = list_of(token);
  n_tokens_ += own.tokens[0] < 0;
  move_to_front(own);
  if (const auto pair = list_of(before, token)) move_to_front(*pair);
}

Sureness sureness_of(double probability) {
  if (probability < 0.3) return Sureness::Low;
  return probability < 0.6   ? Sureness::Middle
         : probability < 0.9 ? Sureness::High
                             : Sureness::Highest;
}

std::shared_ptr<SuccessorTable> KeptSuccessors::table(int vocab_size, int k, int n_pairs) {
  if (!table_ || table_->k() != k || n_pairs_ != n_pairs)
    table_ = std::make_shared<SuccessorTable>(vocab_size, k, n_pairs);
  n_pairs_ = n_pairs;
  return table_;
}

}  // namespace engine
