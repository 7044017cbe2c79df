#include "engine/tokenizer/bpe/bpe_model.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "engine/base/utf8.h"
#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {

BpeVocabulary::BpeVocabulary(std::vector<std::string> texts)
    : texts_(std::move(texts)), byte_tokens_(256, -1) {
  ids_.reserve(texts_.size());
  for (std::size_t id = 0; id < texts_.size(); id++) {
    const std::string& text = texts_[id];
    if (text.empty()) continue;
    ids_.emplace(text, static_cast<TokenId>(id));
    longest_ = std::max(longest_, text.size());
    if (const int byte = byte_of_piece(text); byte >= 0)
      byte_tokens_[static_cast<std::size_t>(byte)] = static_cast<TokenId>(id);
  }
}

MergeTable::MergeTable(std::size_t n) : entries_(std::bit_ceil(2 * n + 1)) {}

// Finds the slot of a pair, or the free slot in which to insert it.
std::size_t MergeTable::place_of(std::uint64_t pair) const {
  const std::size_t mask = entries_.size() - 1;
  // Fibonacci hashing: every bit of the pair changes the high half of the product.
  const std::uint64_t hash = pair * 0x9E3779B97F4A7C15u;
  std::size_t at = static_cast<std::size_t>(hash >> 32) & mask;
  while (entries_[at].merge.id >= 0 && entries_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

namespace {

std::uint64_t pair_of(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

}  // namespace

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  Entry& entry = entries_[place_of(pair_of(left, right))];
  if (entry.merge.id < 0) entry = {pair_of(left, right), merge};
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
  if (left < 0 || right < 0) return {};
  return entries_[place_of(pair_of(left, right))].merge;
}

BpeModel::BpeModel(BpeVocabulary vocabulary, BpeRules rules)
    : vocabulary_(std::move(vocabulary)), rules_(std::move(rules)) {
  ensure(rules_.text_ranks.empty() || rules_.text_ranks.size() == vocabulary_.size(),
         "BpeModel: text_ranks needs an element for each id");
}

void BpeModel::encode(std::string_view word,
                      Workspace& workspace,
                      std::vector<TokenId>& ids) const {
  if (rules_.ignore_merges) {
    if (const TokenId id = vocabulary_.find(word); id >= 0) return ids.push_back(id);
  }
  read_symbols(word, workspace);
  merge_all(word, workspace);
  append(word, workspace, ids);
}

TokenId BpeModel::byte_token(char byte) const {
  return vocabulary_.byte_tokens()[static_cast<unsigned char>(byte)];
}

// True if an unknown character is encoded as its bytes.
bool BpeModel::has_byte_tokens(std::string_view character) const {
  return rules_.byte_fallback &&
         std::ranges::all_of(character, [&](char byte) { return byte_token(byte) >= 0; });
}

// With merges by text, an unknown character is kept for now, because a merged token may contain it.
// append() replaces those that remain.
void BpeModel::read_symbols(std::string_view word, Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  symbols.clear();
  bool after_unknown = false;
  for (std::size_t i = 0; i < word.size();) {
    const std::string_view character =
        word.substr(i, static_cast<std::size_t>(utf8_at(word, i).length));
    const auto begin = static_cast<std::uint32_t>(i);
    const auto n = static_cast<std::uint32_t>(character.size());
    i += n;
    const TokenId id = vocabulary_.find(character);
    const bool is_unknown = id < 0 && rules_.text_ranks.empty();
    if (!is_unknown) {
      symbols.push_back({id, begin, n});
    } else if (has_byte_tokens(character)) {
      for (std::uint32_t j = 0; j < n; j++)
        symbols.push_back({byte_token(character[j]), begin + j, 1});
      after_unknown = false;
      continue;
    } else if (rules_.unknown && after_unknown && rules_.fuse_unknown) {
      symbols.back().n += n;
    } else if (rules_.unknown) {
      symbols.push_back({*rules_.unknown, begin, n});
    }
    after_unknown = is_unknown;
  }
  const auto n_symbols = static_cast<std::int32_t>(symbols.size());
  for (std::int32_t i = 0; i < n_symbols; i++) {
    symbols[static_cast<std::size_t>(i)].previous = i - 1;
    symbols[static_cast<std::size_t>(i)].next = i + 1 < n_symbols ? i + 1 : -1;
  }
}

MergeTable::Merge BpeModel::merge_of(std::string_view word,
                                     const Workspace::Symbol& left,
                                     const Workspace::Symbol& right) const {
  if (rules_.text_ranks.empty()) return rules_.merges.find(left.id, right.id);
  const std::size_t n = left.n + right.n;
  if (n > vocabulary_.longest()) return {};
  const TokenId id = vocabulary_.find(word.substr(left.begin, n));
  if (id < 0) return {};
  const std::uint32_t rank = rules_.text_ranks[static_cast<std::size_t>(id)];
  return rank == BpeRules::kNoRank ? MergeTable::Merge{} : MergeTable::Merge{rank, id};
}

// Looks up the merge of a symbol with its right neighbour, and adds it to the heap.
void BpeModel::offer(std::string_view word, std::int32_t left, Workspace& workspace) const {
  if (left < 0) return;
  Workspace::Symbol& a = workspace.symbols[static_cast<std::size_t>(left)];
  a.merge = {};
  if (a.next < 0) return;
  a.merge = merge_of(word, a, workspace.symbols[static_cast<std::size_t>(a.next)]);
  if (a.merge.id < 0) return;
  workspace.heap.push_back(std::uint64_t{a.merge.rank} << 32 | static_cast<std::uint32_t>(left));
  std::ranges::push_heap(workspace.heap, std::greater{});
}

// Of several pairs with the same rank, the leftmost is merged first.
void BpeModel::merge_all(std::string_view word, Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  workspace.heap.clear();
  for (std::size_t i = 0; i < symbols.size(); i++)
    offer(word, static_cast<std::int32_t>(i), workspace);
  while (!workspace.heap.empty()) {
    std::ranges::pop_heap(workspace.heap, std::greater{});
    const std::uint64_t best = workspace.heap.back();
    workspace.heap.pop_back();
    const auto at = static_cast<std::int32_t>(best & 0xFFFFFFFF);
    Workspace::Symbol& left = symbols[static_cast<std::size_t>(at)];
    if (left.merge.id < 0 || left.merge.rank != best >> 32) continue;  // outdated
    Workspace::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    left.id = left.merge.id;
    left.n = right.begin + right.n - left.begin;
    left.next = right.next;
    right.n = 0;
    right.merge = {};
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = at;
    offer(word, left.previous, workspace);
    offer(word, at, workspace);
  }
}

void BpeModel::append(std::string_view word,
                      const Workspace& workspace,
                      std::vector<TokenId>& ids) const {
  bool after_unknown = false;
  for (const Workspace::Symbol& symbol : workspace.symbols) {
    if (symbol.n == 0) continue;
    if (symbol.id >= 0) {
      ids.push_back(symbol.id);
      after_unknown = false;
      continue;
    }
    const std::string_view bytes = word.substr(symbol.begin, symbol.n);
    if (has_byte_tokens(bytes)) {
      for (const char byte : bytes) ids.push_back(byte_token(byte));
      after_unknown = false;
    } else if (rules_.unknown && !(after_unknown && rules_.fuse_unknown)) {
      ids.push_back(*rules_.unknown);
      after_unknown = true;
    }
  }
}

}  // namespace engine
