// The attention mask and positions of a batch of token trees, built once per forward for all layers (tree attention).
//   order  items with picked rows come first. Operations that need only these items (last layer,
//          logits) then work on rows [0, n_picked())
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/model/language_model.h"
#include "kernels/ops.h"

namespace engine {

/// The plan of a model's current forward. The object is kept between forwards to reuse its memory.
class ForwardPlan {
 public:
  /// Builds the plan of a batch.
  /// @throws ContractError     if an item breaks the contract of BatchItem
  /// @throws Error(Resources)  if a row's position is not below max_seq_len
  void build(std::span<const BatchItem> items, int vocab_size, int max_seq_len);

  /// Rows of all items.
  int n_rows() const { return static_cast<int>(token_.size()); }
  /// Rows [0, n_picked()) belong to items with pick_rows.
  int n_picked() const { return n_picked_; }
  /// First row of an item; its rows follow in the order of its tree.
  int row_begin(std::size_t item) const { return row_begin_[item]; }
  /// [n_rows] tokens.
  std::span<const TokenId> token() const { return token_; }
  /// [n_rows] positions.
  std::span<const int> pos() const { return pos_; }
  /// [n_rows] BatchItem::n_prompt of each row's item.
  std::span<const int> n_prompt() const { return n_prompt_; }
  /// The largest position plus one.
  int n_positions() const { return n_positions_; }
  /// The rows of the batch on the path from the oldest ancestor of `row` to `row` itself.
  std::span<const int> chain(int row) const;
  /// The plan in the form that operations read, limited to the first n_rows rows.
  kernels::RowsPlan view(int n_rows, int sliding_window) const;

 private:
  void add_item(const BatchItem& item, std::size_t index, int vocab_size, int max_seq_len);

  std::vector<int> row_begin_;  // [n_items]
  std::vector<TokenId> token_;
  std::vector<int> seq_, pos_, n_prompt_, chain_begin_, chain_;
  std::vector<int> prefix_len_, page_begin_, pages_;
  std::uint64_t version_ = 0;  // of the current plan
  int n_picked_ = 0;
  int n_positions_ = 0;
};

/// The cache of an item as a PagedCache.
/// @throws ContractError  if it is another kind of cache
PagedCache& paged(SequenceCache* cache);

}  // namespace engine
