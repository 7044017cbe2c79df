// What attention's kernels are told of a forward's rows: who sees what, and the passes that they go
// in. Made, and told to the device, once a forward and not once a layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {

class CudaDevice;

/// Rows that go through the kernels together: their partial results fit the memory for them.
/// Lists by where they begin among all.
struct AttentionPass {
  std::size_t rows;        // sequence by sequence
  std::size_t chunk_base;  // [n_rows + 1]  where a row's chunks begin
  std::size_t listed;      // [n_rows]  ListedRow
  std::size_t items;       // [n_items]  ChunkItem
  int n_rows, n_items;
};

/// Where the lists of a RowsPlan begin among all.
struct PlanPlaces {
  std::size_t seq, pos, chain_begin, prefix_len, page_begin, pages, chain;
};

/// What lists are made of. Without a version they are nobody's again.
struct AttentionKey {
  std::uint64_t version = 0;  // of the plan
  int n_rows = 0, window = 0;
  std::int64_t most_chunks = 0;  // of a pass
  bool operator==(const AttentionKey&) const = default;
};

/// Of one plan, in one piece.
class AttentionLists {
 public:
  void make(const RowsPlan& plan, const AttentionKey& key);
  const AttentionKey& key() const { return key_; }
  std::span<const int> all() const { return ints_; }
  const PlanPlaces& plan() const { return plan_; }
  std::span<const AttentionPass> passes() const { return passes_; }
  /// Chunks of the largest pass.
  int n_chunks() const { return n_chunks_; }
  const int* there = nullptr;  // all of them, on the device; null: not told

 private:
  std::size_t add(const int* list, std::int64_t n);
  std::size_t add(const std::vector<int>& list);

  AttentionKey key_;
  std::vector<int> ints_;
  PlanPlaces plan_ = {};
  std::vector<AttentionPass> passes_;
  int n_chunks_ = 0;
};

/// Those of the forward in progress: layers with a window and without one, and the last, which may
/// have fewer rows, have their own.
class AttentionPlans {
 public:
  static constexpr int kMost = 4;
  /// Told to the device.
  const AttentionLists& of(CudaDevice& device, const RowsPlan& plan, std::int64_t floats_a_chunk);
  /// How many floats a pass may leave for the join, for tests; one row's are always had.
  void limit_partials(std::int64_t floats) { most_floats_ = floats; }

 private:
  std::array<AttentionLists, kMost> lists_;
  std::uint64_t version_ = 0;  // of the forward
  int n_used_ = 0;             // by it, the first of lists_
  std::int64_t most_floats_ = std::int64_t{16} << 20;
};

}  // namespace kernels::DECOSCOPE_GPU
