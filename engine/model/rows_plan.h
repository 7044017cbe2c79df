// Turns the trees of a batch into the one table that attention reads: which row stands where and
// sees whom. Built once a forward, the same for every layer.
//   order  items whose rows are picked come first, so that what is computed for them alone (the
//          last layer, the vocabulary) is a run of rows from 0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/model/language_model.h"
#include "kernels/ops.h"

namespace engine {

/// One model's plan, kept between forwards for its memory.
class ForwardPlan {
 public:
  /// @throws ContractError     if an item breaks the contract of BatchItem
  /// @throws Error(Resources)  if a row's position is not below max_seq_len
  void build(std::span<const BatchItem> items, int vocab_size, int max_seq_len);

  int n_rows() const { return static_cast<int>(token_.size()); }
  /// Rows [0, n_picked()) belong to items with pick_rows.
  int n_picked() const { return n_picked_; }
  /// First row of an item; its rows follow in the order of its tree.
  int row_begin(std::size_t item) const { return row_begin_[item]; }
  std::span<const TokenId> token() const { return token_; }
  std::span<const int> pos() const { return pos_; }
  /// The n_prompt of each row's item (BatchItem::n_prompt).
  std::span<const int> n_prompt() const { return n_prompt_; }
  /// The longest position plus one.
  int n_positions() const { return n_positions_; }
  /// Rows of the batch from the oldest ancestor of a row to the row itself.
  std::span<const int> chain(int row) const;
  /// What attention reads, for the first n_rows rows.
  kernels::RowsPlan view(int n_rows, int sliding_window) const;

 private:
  void add_item(const BatchItem& item, std::size_t index, int vocab_size, int max_seq_len);

  std::vector<int> row_begin_;  // [n_items]
  std::vector<TokenId> token_;
  std::vector<int> seq_, pos_, n_prompt_, chain_begin_, chain_;
  std::vector<int> prefix_len_, page_begin_, pages_;
  std::uint64_t version_ = 0;  // of what is built
  int n_picked_ = 0;
  int n_positions_ = 0;
};

/// The cache of an item as this engine's own.
/// @throws ContractError  if another kind of model made it
PagedCache& paged(SequenceCache* cache);

}  // namespace engine
