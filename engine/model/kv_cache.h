// The keys and values of all sequences of one model: pages of 64 positions that sequences share,
// and the rows of the last forward, staged until a path of them is kept.
//   page      the same id in every layer; counted; a fork shares every page of its prefix
//   writing   a page that two caches hold is copied before one of them writes to it
//   staged    commit() keeps staged rows, bit for bit; they are copied for all caches together,
//             before the next forward overwrites them or somebody reads their pages
//   growth    the pool doubles, or grows by what there is room for; a layer's pages stay one block,
//             since ops count pages from its start
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/language_model.h"
#include "kernels/device.h"

namespace engine {

struct KvShape {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  kernels::DType dtype = kernels::DType::F32;
};

/// Pages and staged rows of one model. Held by the model and by each of its caches.
class KvStore {
 public:
  KvStore(kernels::Device& device, const KvShape& shape);

  // Pages.
  /// A page held once. @throws Error(Resources)  if the device has no room for more
  int acquire();
  void hold(int page);
  void drop(int page);
  bool shared(int page) const { return n_holders_[static_cast<std::size_t>(page)] > 1; }
  void copy_page(int from, int to);
  const kernels::KvLayer& layer(int l) const { return layers_[static_cast<std::size_t>(l)]; }
  std::int64_t bytes_of_page() const;  // keys and values of all layers
  std::int64_t n_pages_in_use() const {
    return static_cast<std::int64_t>(n_holders_.size() - free_.size());
  }

  // Staged rows.
  /// A new forward of n_rows rows: what was staged before is gone, once what was committed of it is
  /// in its pages.
  void begin_forward(int n_rows);
  void* staged_k(int l) const { return staged_[static_cast<std::size_t>(2 * l)].data(); }
  void* staged_v(int l) const { return staged_[static_cast<std::size_t>(2 * l + 1)].data(); }
  std::int64_t forward_number() const { return forward_number_; }
  /// Staged rows src[i] belong in slot[i] of page[i], in every layer; they come there by
  /// write_commits(). No slot twice in a forward.
  void commit(std::span<const int> src, std::span<const int> page, std::span<const int> slot);
  /// Copies what was committed since the last forward to its pages, with one operation. Where that
  /// fails it is still to be copied, and may be asked for again.
  void write_commits();

  const KvShape& shape() const { return shape_; }
  kernels::Device& device() const { return device_; }

 private:
  void grow();
  bool fits(int n_pages) const;
  void grow_to(int n_pages);
  bool has_commits_to(int page) const { return committed_[static_cast<std::size_t>(page)] != 0; }
  void forget_commits_to(int page);

  kernels::Device& device_;  // owned by the program, outlives every model and cache
  KvShape shape_;
  std::int64_t page_bytes_;
  std::vector<kernels::DeviceBuffer> pages_;  // [2 n_layers] keys, values of each layer
  std::vector<kernels::KvLayer> layers_;      // views of pages_
  std::vector<int> n_holders_;                // of each page ever used
  std::vector<int> free_;
  int capacity_ = 0;
  std::vector<kernels::DeviceBuffer> staged_;        // [2 n_layers]
  std::vector<kernels::StagedLayer> staged_layers_;  // views of staged_
  int staged_rows_ = 0;
  std::int64_t forward_number_ = 0;
  /// Rows that are not in their pages yet, as commit() was told them.
  struct Commits {
    std::vector<int> src, page, slot;
  };
  Commits commits_;
  std::vector<std::uint64_t> committed_;  // [page] a bit a slot of it that commits_ has a row for
};

/// One sequence's committed prefix, as pages of a store.
class PagedCache final : public SequenceCache {
 public:
  explicit PagedCache(std::shared_ptr<KvStore> store) : store_(std::move(store)) {}
  ~PagedCache() override;
  PagedCache(const PagedCache&) = delete;
  PagedCache& operator=(const PagedCache&) = delete;

  int length() const override { return length_; }
  int n_in_blocks() const override { return n_in_blocks_; }
  void commit(std::span<const int> path) override;
  void truncate(int length) override;
  std::unique_ptr<SequenceCache> fork() const override;
  std::int64_t own_bytes() const override;

  /// Pages of the committed positions, in position order.
  std::span<const int> pages() const;
  const KvStore& store() const { return *store_; }
  /// Says which rows of the store's current forward are this cache's.
  /// @param parent  [n_rows] of the tree; the cache keeps a copy
  void set_staged(int row_begin, std::span<const int> parent, bool in_blocks = false);

 private:
  void make_room(int n);

  std::shared_ptr<KvStore> store_;
  std::vector<int> pages_;
  int length_ = 0;
  int n_in_blocks_ = 0;
  bool staged_in_blocks_ = false;
  std::int64_t staged_forward_ = -1;  // forward_number of the rows below; -1: none
  int staged_begin_ = 0;
  std::vector<int> staged_parent_;
  std::vector<int> src_, page_, slot_;  // of one commit, kept for their memory
};

}  // namespace engine
