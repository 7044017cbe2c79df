#include "engine/decode/guess/successor_table.h"

#include <algorithm>
#include <bit>

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
      of_pair_(pairs_.size() * static_cast<std::size_t>(k), -1) {
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
  const auto width = static_cast<std::size_t>(k_);
  if (before >= 0 && !pairs_.empty()) {
    const std::size_t place = place_of(before, token);
    if (pairs_[place] == key_of(before, token))
      return known(std::span(of_pair_).subspan(place * width, width));
  }
  return known(std::span(of_token_).subspan(static_cast<std::size_t>(token) * width, width));
}

void SuccessorTable::set(TokenId before, TokenId token, std::span<const TokenId> successors) {
  const std::span<const TokenId> list = known(successors);
  const auto width = static_cast<std::size_t>(k_);
  const auto own = std::span(of_token_).subspan(static_cast<std::size_t>(token) * width, width);
  n_tokens_ += own[0] < 0 && !list.empty();
  fill(own, list);
  if (before < 0 || pairs_.empty()) return;
  const std::size_t place = place_of(before, token);
  pairs_[place] = key_of(before, token);
  fill(std::span(of_pair_).subspan(place * width, width), list);
}

std::shared_ptr<SuccessorTable> KeptSuccessors::table(int vocab_size, int k, int n_pairs) {
  if (!table_ || table_->k() != k || n_pairs_ != n_pairs)
    table_ = std::make_shared<SuccessorTable>(vocab_size, k, n_pairs);
  n_pairs_ = n_pairs;
  return table_;
}

}  // namespace engine
