#include "engine/model/kv_cache.h"

#include <algorithm>
#include <optional>
#include <string>

namespace engine {
namespace {

constexpr int kFirstPages = 8;
constexpr int kRowStep = 16;  // the staged rows grow in steps of this size

int pages_for(int n_positions) {
  return (n_positions + kernels::kPageSize - 1) / kernels::kPageSize;
}

}  // namespace

KvStore::KvStore(kernels::Device& device, const KvShape& shape)
    : device_(device),
      shape_(shape),
      page_bytes_(device.ops().page_bytes(shape.dtype, shape.n_kv_heads, shape.head_dim)) {
  const auto n = static_cast<std::size_t>(shape.n_layers);
  pages_.resize(2 * n);
  staged_.resize(2 * n);
  staged_layers_.resize(n);
  layers_.resize(n, {.page_bytes = page_bytes_,
                     .n_kv_heads = shape.n_kv_heads,
                     .head_dim = shape.head_dim,
                     .dtype = shape.dtype});
}

std::int64_t KvStore::bytes_of_page() const {
  return 2 * page_bytes_ * shape_.n_layers;
}

// Doubles the pages, so that growth copies them rarely. If there is no room, tries an eighth more, then one more.
void KvStore::grow() {
  const bool first = capacity_ == 0;
  const int wishes[] = {first ? kFirstPages : 2 * capacity_, capacity_ + std::max(1, capacity_ / 8),
                        capacity_ + 1};
  for (const int wanted : wishes) {
    const bool last = wanted == capacity_ + 1;
    if (!last && !fits(wanted)) continue;
    try {
      return grow_to(wanted);
    } catch (const Error& error) {
      if (last || error.code() != ErrorCode::Resources) throw;
    }
  }
}

/// True if the device's free memory is unknown or sufficient: for the growth of all blocks, plus one old block during its copy.
bool KvStore::fits(int n_pages) const {
  const std::optional<std::int64_t> free = device_.free_bytes();
  if (!free) return true;
  std::int64_t needed = page_bytes_ * capacity_;
  for (const kernels::DeviceBuffer& block : pages_)
    needed += std::max<std::int64_t>(0, page_bytes_ * n_pages - block.bytes());
  return needed <= *free;
}

// Grows layer by layer, so only one old and one new block exist at the same time. The capacity
// changes last: if the allocation for one layer fails, the other layers only have unused room.
void KvStore::grow_to(int wanted) {
  const std::int64_t used = page_bytes_ * capacity_, bytes = page_bytes_ * wanted;
  const std::string what = "cache page " + std::to_string(capacity_ + 1);
  for (std::size_t i = 0; i < pages_.size(); i++) {
    if (pages_[i].bytes() >= bytes) continue;
    kernels::DeviceBuffer block(device_, bytes, what.c_str());
    if (used > 0) device_.ops().copy(device_, block.data(), pages_[i].data(), used);
    pages_[i] = std::move(block);
    kernels::KvLayer& layer = layers_[i / 2];
    (i % 2 == 0 ? layer.k : layer.v) = pages_[i].data();
  }
  capacity_ = wanted;
}

int KvStore::acquire() {
  if (!free_.empty()) {
    const int page = free_.back();
    free_.pop_back();
    n_holders_[static_cast<std::size_t>(page)] = 1;
    return page;
  }
  if (static_cast<int>(n_holders_.size()) == capacity_) grow();
  committed_.resize(n_holders_.size() + 1);
  n_holders_.push_back(1);
  free_.reserve(n_holders_.size());  // so that drop() cannot throw
  return static_cast<int>(n_holders_.size()) - 1;
}

void KvStore::hold(int page) {
  n_holders_[static_cast<std::size_t>(page)]++;
}

// Commits to a freed page are dropped, because they would overwrite data of its next owner.
void KvStore::drop(int page) {
  if (--n_holders_[static_cast<std::size_t>(page)] > 0) return;
  free_.push_back(page);
  forget_commits_to(page);
}

void KvStore::copy_page(int from, int to) {
  if (has_commits_to(from) || has_commits_to(to)) write_commits();
  for (const kernels::KvLayer& layer : layers_)
    device_.ops().kv_copy_page(device_, layer, from, to);
}

void KvStore::begin_forward(int n_rows) {
  write_commits();
  forward_number_++;
  if (n_rows <= staged_rows_) return;
  const int wanted = (std::max(n_rows, 2 * staged_rows_) + kRowStep - 1) / kRowStep * kRowStep;
  const std::int64_t bytes = std::int64_t{wanted} * shape_.n_kv_heads *
                             kernels::cache_bytes(shape_.dtype, shape_.head_dim);
  staged_rows_ = 0;
  for (kernels::DeviceBuffer& buffer : staged_) {
    buffer = kernels::DeviceBuffer();
    buffer = kernels::DeviceBuffer(device_, bytes, "a step's keys and values");
  }
  for (std::size_t l = 0; l < staged_layers_.size(); l++)
    staged_layers_[l] = {staged_[2 * l].data(), staged_[2 * l + 1].data()};
  staged_rows_ = wanted;
}

void KvStore::commit(std::span<const int> src,
                     std::span<const int> page,
                     std::span<const int> slot) {
  static_assert(kernels::kPageSize <= 64, "one bit per slot");
  for (std::size_t i = 0; i < slot.size(); i++) {
    std::uint64_t& slots = committed_[static_cast<std::size_t>(page[i])];
    const std::uint64_t bit = std::uint64_t{1} << slot[i];
    ensure((slots & bit) == 0, "commit: a slot is written twice in a forward");
    slots |= bit;
  }
  commits_.src.insert(commits_.src.end(), src.begin(), src.end());
  commits_.page.insert(commits_.page.end(), page.begin(), page.end());
  commits_.slot.insert(commits_.slot.end(), slot.begin(), slot.end());
}

// One operation for all sequences needs one launch. With one operation per sequence, each operation
// would first have to launch the kernels that wait, because the device has memory for only one list
// of rows.
void KvStore::write_commits() {
  if (commits_.src.empty()) return;
  device_.ops().kv_commit(device_, layers_.data(), staged_layers_.data(), shape_.n_layers,
                          commits_.src.data(), commits_.page.data(), commits_.slot.data(),
                          static_cast<int>(commits_.src.size()));
  for (const int page : commits_.page) committed_[static_cast<std::size_t>(page)] = 0;
  commits_.src.clear();
  commits_.page.clear();
  commits_.slot.clear();
}

void KvStore::forget_commits_to(int page) {
  if (!has_commits_to(page)) return;
  committed_[static_cast<std::size_t>(page)] = 0;
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < commits_.page.size(); i++) {
    if (commits_.page[i] == page) continue;
    commits_.src[n_kept] = commits_.src[i];
    commits_.page[n_kept] = commits_.page[i];
    commits_.slot[n_kept] = commits_.slot[i];
    n_kept++;
  }
  for (std::vector<int>* one : {&commits_.src, &commits_.page, &commits_.slot}) one->resize(n_kept);
}

PagedCache::~PagedCache() {
  for (const int page : pages_) store_->drop(page);
}

std::span<const int> PagedCache::pages() const {
  return std::span(pages_).first(static_cast<std::size_t>(pages_for(length_)));
}

void PagedCache::set_staged(int row_begin, std::span<const int> parent, bool in_blocks) {
  staged_forward_ = store_->forward_number();
  staged_in_blocks_ = in_blocks;
  staged_begin_ = row_begin;
  staged_parent_.assign(parent.begin(), parent.end());
}

// Makes pages for n more positions. The first of them may lie in a page that a fork shares: copies that page.
void PagedCache::make_room(int n) {
  const auto partial = static_cast<std::size_t>(length_ / kernels::kPageSize);
  if (length_ % kernels::kPageSize != 0 && store_->shared(pages_[partial])) {
    const int own = store_->acquire();
    store_->copy_page(pages_[partial], own);
    store_->drop(pages_[partial]);
    pages_[partial] = own;
  }
  pages_.reserve(static_cast<std::size_t>(pages_for(length_ + n)));
  while (static_cast<int>(pages_.size()) < pages_for(length_ + n))
    pages_.push_back(store_->acquire());
}

void PagedCache::commit(std::span<const int> path) {
  ensure(staged_forward_ == store_->forward_number(),
         "commit: must be called once, after the model's last forward");
  for (std::size_t i = 0; i < path.size(); i++) {
    ensure(path[i] >= 0 && path[i] < static_cast<int>(staged_parent_.size()),
           "commit: a row is not in the forward");
    ensure(staged_parent_[static_cast<std::size_t>(path[i])] == (i == 0 ? -1 : path[i - 1]),
           "commit: each row of the path must be a child of the row before it");
  }
  if (path.empty()) {
    staged_forward_ = -1;
    return;
  }
  ensure(!staged_in_blocks_ || path.size() == staged_parent_.size(),
         "commit: a block must be committed as a whole");
  make_room(static_cast<int>(path.size()));
  src_.clear();
  page_.clear();
  slot_.clear();
  for (std::size_t i = 0; i < path.size(); i++) {
    const int pos = length_ + static_cast<int>(i);
    src_.push_back(staged_begin_ + path[i]);
    page_.push_back(pages_[static_cast<std::size_t>(pos / kernels::kPageSize)]);
    slot_.push_back(pos % kernels::kPageSize);
  }
  store_->commit(src_, page_, slot_);
  length_ += static_cast<int>(path.size());
  if (staged_in_blocks_) n_in_blocks_ = length_;
  staged_forward_ = -1;
}

// Drops all pages after the last kept position, so that this cache never writes to one that a fork
// still shares.
void PagedCache::truncate(int length) {
  ensure(length >= 0 && length <= length_, "truncate: length must be 0 to the current length");
  for (std::size_t i = static_cast<std::size_t>(pages_for(length)); i < pages_.size(); i++)
    store_->drop(pages_[i]);
  pages_.resize(static_cast<std::size_t>(pages_for(length)));
  length_ = length;
  n_in_blocks_ = std::min(n_in_blocks_, length);
  staged_forward_ = -1;
}

std::unique_ptr<SequenceCache> PagedCache::fork() const {
  auto copy = std::make_unique<PagedCache>(store_);
  copy->pages_.assign(pages().begin(), pages().end());
  copy->length_ = length_;
  copy->n_in_blocks_ = n_in_blocks_;
  for (const int page : copy->pages_) store_->hold(page);
  return copy;
}

std::int64_t PagedCache::own_bytes() const {
  const auto n = std::count_if(pages_.begin(), pages_.end(),
                               [this](int page) { return !store_->shared(page); });
  return n * store_->bytes_of_page();
}

}  // namespace engine
