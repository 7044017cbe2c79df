// Lists for the attention kernels: the attention mask of a forward's rows, cut into passes. The host makes and uploads
// them once per forward, not once per layer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"

#include "kernels/cuda/platform.h"

namespace kernels::DECOSCOPE_GPU {

class CudaDevice;

/// Rows that go through the kernels together, because their partial results fit the memory for
/// them. The first four members are the indices at which its lists begin.
struct AttentionPass {
  std::size_t rows;        // sequence by sequence
  std::size_t chunk_base;  // [n_rows + 1]  first chunk of each row
  std::size_t listed;      // [n_rows]  ListedRow
  std::size_t items;       // [n_items]  ChunkItem
  int n_rows, n_items;
};

/// The index at which each list of a RowsPlan begins.
struct PlanPlaces {
  std::size_t seq, pos, chain_begin, prefix_len, page_begin, pages, chain;
};

/// The inputs from which lists are made. A plan without a version always gets new lists.
struct AttentionKey {
  std::uint64_t version = 0;  // of the plan
  int n_rows = 0, window = 0;
  std::int64_t most_chunks = 0;  // in a pass
  bool operator==(const AttentionKey&) const = default;
};

/// All lists of one plan, as one array of ints.
class AttentionLists {
 public:
  /// Makes the lists of a plan. The device has no copy of them yet.
  void make(const RowsPlan& plan, const AttentionKey& key);
  /// The key of make().
  const AttentionKey& key() const { return key_; }
  /// The array of all lists.
  std::span<const int> all() const { return ints_; }
  /// The index at which each list of the plan begins.
  const PlanPlaces& plan() const { return plan_; }
  /// The passes.
  std::span<const AttentionPass> passes() const { return passes_; }
  /// Number of chunks in the largest pass.
  int n_chunks() const { return n_chunks_; }
  const int* on_device = nullptr;  // the device's copy of the array; null: not uploaded

 private:
  std::size_t add(const int* list, std::int64_t n);
  std::size_t add(const std::vector<int>& list);

  AttentionKey key_;
  std::vector<int> ints_;
  PlanPlaces plan_ = {};
  std::vector<AttentionPass> passes_;
  int n_chunks_ = 0;
};

/// The lists of the forward in progress. Layers with a window, layers without one and the last layer, which may have
/// fewer rows, have lists of their own.
class AttentionPlans {
 public:
  static constexpr int kMost = 4;
  /// The uploaded lists of a plan.
  /// @param floats_a_chunk  floats of a row's partial result of one chunk
  const AttentionLists& of(CudaDevice& device, const RowsPlan& plan, std::int64_t floats_a_chunk);
  /// Limits the floats of a pass's partial results, for tests. A pass has at least one row.
  void limit_partials(std::int64_t floats) { most_floats_ = floats; }

 private:
  std::array<AttentionLists, kMost> lists_;
  std::uint64_t version_ = 0;  // of the forward
  int n_used_ = 0;             // number of leading entries of lists_ that this forward uses
  std::int64_t most_floats_ = std::int64_t{16} << 20;
};

}  // namespace kernels::DECOSCOPE_GPU
