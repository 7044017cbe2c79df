// The paged KV cache of all sequences of one model: pages of 64 positions that sequences can share, and the staged rows of the
// last forward, of which a decoder commits a path.
//   page     has one id, which is the same in every layer, and a reference count; a fork shares all
//            pages of its prefix
//   writing  before a cache writes to a shared page, it gets its own copy (copy on write)
//   staged   commit() keeps staged rows bit for bit. The rows of all caches are copied to their
//            pages together: before the next forward overwrites the staged rows, or before an
//            operation reads the pages
//   growth   the pool doubles if there is room; otherwise it grows by less. The pages of a layer
//            stay in one block, because operations compute the address of a page from the start of
//            the block and the page's id
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/language_model.h"
#include "kernels/device.h"

namespace engine {

/// Shape of a model's cache.
struct KvShape {
  int n_layers = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  kernels::DType dtype = kernels::DType::F32;
};

/// Pages and staged rows of one model. The model and its caches share it.
class KvStore {
 public:
  /// @param device  outlives the store
  KvStore(kernels::Device& device, const KvShape& shape);

  // Pages.
  /// A page with reference count 1. @throws Error(Resources)  if the device has no room for more
  int acquire();
  /// Adds a reference.
  void hold(int page);
  /// Removes a reference; the last one frees the page.
  void drop(int page);
  /// True if a page has several references.
  bool shared(int page) const { return n_holders_[static_cast<std::size_t>(page)] > 1; }
  /// Copies a page in every layer.
  void copy_page(int from, int to);
  /// Pages of a layer, for operations.
  const kernels::KvLayer& layer(int l) const { return layers_[static_cast<std::size_t>(l)]; }
  std::int64_t bytes_of_page() const;  // keys and values of all layers
  /// Pages with references.
  std::int64_t n_pages_in_use() const {
    return static_cast<std::int64_t>(n_holders_.size() - free_.size());
  }

  // Staged rows.
  /// Starts a forward of n_rows rows: writes the recorded commits of the last forward, then
  /// discards its staged rows.
  void begin_forward(int n_rows);
  /// Staged keys of a layer, [n_rows, n_kv_heads, head_dim].
  void* staged_k(int l) const { return staged_[static_cast<std::size_t>(2 * l)].data(); }
  /// Staged values of a layer.
  void* staged_v(int l) const { return staged_[static_cast<std::size_t>(2 * l + 1)].data(); }
  /// Number of the current forward.
  std::int64_t forward_number() const { return forward_number_; }
  /// Records that staged row src[i] belongs to slot[i] of page[i], in every layer; write_commits()
  /// copies the rows. A slot may be recorded only once per forward.
  void commit(std::span<const int> src, std::span<const int> page, std::span<const int> slot);
  /// Copies the recorded rows to their pages with one operation. If it throws, the rows stay recorded and the call can be
  /// repeated.
  void write_commits();

  /// Shape of the cache.
  const KvShape& shape() const { return shape_; }
  /// Device of the pages.
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
  // number of references of each page that was ever used
  std::vector<int> n_holders_;
  std::vector<int> free_;
  int capacity_ = 0;
  std::vector<kernels::DeviceBuffer> staged_;        // [2 n_layers]
  std::vector<kernels::StagedLayer> staged_layers_;  // views of staged_
  int staged_rows_ = 0;
  std::int64_t forward_number_ = 0;
  /// The rows that calls of commit() recorded and that write_commits() has not copied yet.
  struct Commits {
    std::vector<int> src, page, slot;
  };
  Commits commits_;
  std::vector<std::uint64_t> committed_;  // [page] one bit per slot with a row in commits_
};

/// The committed prefix of one sequence, as pages of a store.
class PagedCache final : public SequenceCache {
 public:
  /// An empty prefix.
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

  /// The pages of the committed positions, in the order of the positions.
  std::span<const int> pages() const;
  /// The store of the pages.
  const KvStore& store() const { return *store_; }
  /// Tells the cache which staged rows of the current forward belong to it.
  /// @param parent  [n_rows] of the tree; the cache keeps a copy
  void set_staged(int row_begin, std::span<const int> parent, bool in_blocks = false);

 private:
  void make_room(int n);

  std::shared_ptr<KvStore> store_;
  std::vector<int> pages_;
  int length_ = 0;
  int n_in_blocks_ = 0;
  bool staged_in_blocks_ = false;
  std::int64_t staged_forward_ = -1;  // number of the forward that staged the rows below; -1: none
  int staged_begin_ = 0;
  std::vector<int> staged_parent_;
  std::vector<int> src_, page_, slot_;  // the arguments of one commit, kept to reuse their memory
};

}  // namespace engine
