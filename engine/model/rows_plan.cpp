#include "engine/model/rows_plan.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

namespace engine {

PagedCache& paged(SequenceCache* cache) {
  auto* own = dynamic_cast<PagedCache*>(cache);
  ensure(own != nullptr, "forward: a batch item needs a cache that this model made");
  return *own;
}

void ForwardPlan::build(std::span<const BatchItem> items, int vocab_size, int max_seq_len) {
  // One counter for all models, because devices cache data of a plan by its version.
  static std::atomic<std::uint64_t> n_built{0};
  version_ = ++n_built;
  token_.clear();
  seq_.clear();
  pos_.clear();
  n_prompt_.clear();
  chain_begin_.assign(1, 0);
  chain_.clear();
  prefix_len_.clear();
  page_begin_.assign(1, 0);
  pages_.clear();
  row_begin_.resize(items.size());
  n_positions_ = 0;
  for (std::size_t i = 0; i < items.size(); i++)
    if (items[i].pick_rows) add_item(items[i], i, vocab_size, max_seq_len);
  n_picked_ = n_rows();
  for (std::size_t i = 0; i < items.size(); i++)
    if (!items[i].pick_rows) add_item(items[i], i, vocab_size, max_seq_len);
}

void ForwardPlan::add_item(const BatchItem& item,
                           std::size_t index,
                           int vocab_size,
                           int max_seq_len) {
  ensure(item.tree != nullptr, "forward: a batch item has no tree");
  const TokenTree& tree = *item.tree;
  const PagedCache& cache = paged(item.cache);
  const int n_prefix = cache.length();
  ensure(static_cast<int>(item.prefix.size()) == n_prefix,
         "forward: prefix must have one token for each cached position");
  ensure(tree.parent.size() == tree.token.size(), "forward: a tree must have one parent per token");
  ensure(item.greedy_rows.empty() || item.greedy_rows.size() == tree.token.size(),
         "forward: greedy_rows must be empty or have one mark per row");

  const int first = n_rows();
  const int seq = static_cast<int>(prefix_len_.size());
  row_begin_[index] = first;
  prefix_len_.push_back(n_prefix);
  pages_.insert(pages_.end(), cache.pages().begin(), cache.pages().end());
  page_begin_.push_back(static_cast<int>(pages_.size()));

  for (int r = 0; r < tree.n_rows(); r++) {
    const TokenId token = tree.token[static_cast<std::size_t>(r)];
    const int parent = tree.parent[static_cast<std::size_t>(r)];
    ensure(token >= 0 && token < vocab_size, "forward: a token must be below vocab_size");
    ensure(parent >= -1 && parent < r, "forward: a parent must come before its row");
    int n_ancestors = 0;
    if (parent >= 0) {
      const auto p = static_cast<std::size_t>(first + parent);
      const int begin = chain_begin_[p];
      n_ancestors = chain_begin_[p + 1] - begin;
      const std::size_t end = chain_.size();
      chain_.resize(end + static_cast<std::size_t>(n_ancestors));
      std::copy_n(chain_.begin() + begin, n_ancestors, chain_.begin() + static_cast<long>(end));
    }
    chain_.push_back(first + r);
    chain_begin_.push_back(static_cast<int>(chain_.size()));
    token_.push_back(token);
    seq_.push_back(seq);
    pos_.push_back(n_prefix + n_ancestors);
    n_prompt_.push_back(item.n_prompt);
    if (pos_.back() >= max_seq_len)
      throw Error(
          ErrorCode::Resources,
          fmt::format("sequence: length: found {} positions, the model holds {}; "
                      "shorten the prompt, ask for fewer tokens, or set a longer context with "
                      "--context N",
                      pos_.back() + 1, max_seq_len));
    n_positions_ = std::max(n_positions_, pos_.back() + 1);
  }
}

std::span<const int> ForwardPlan::chain(int row) const {
  const auto r = static_cast<std::size_t>(row);
  return std::span(chain_).subspan(static_cast<std::size_t>(chain_begin_[r]),
                                   static_cast<std::size_t>(chain_begin_[r + 1] - chain_begin_[r]));
}

kernels::RowsPlan ForwardPlan::view(int n_rows, int sliding_window) const {
  return {.n_rows = n_rows,
          .n_seqs = static_cast<int>(prefix_len_.size()),
          .seq = seq_.data(),
          .pos = pos_.data(),
          .prefix_len = prefix_len_.data(),
          .page_begin = page_begin_.data(),
          .pages = pages_.data(),
          .chain_begin = chain_begin_.data(),
          .chain = chain_.data(),
          .sliding_window = sliding_window,
          .version = version_};
}

}  // namespace engine
