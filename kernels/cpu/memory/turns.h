// The panels of a matrix, and which thread takes which of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "kernels/error.h"

namespace kernels::cpu {

/// Threads take some panels at a time: a fraction of the rest, so that all threads end together, at most 256 KiB, so that a
/// preempted thread delays little, and at least some that are multiplied side by side. Each NUMA node has a contiguous share of the
/// panels; a thread takes panels of its own node first, then those of others.
class Turns {
 public:
  static constexpr int kMostNodes = 16;

  /// @param n_threads        number of threads that take panels
  /// @param threads_by_node  the pool's threads on each node (ThreadNodes::n_threads()); the shares have the same proportion
  Turns(int n_panels,
        std::int64_t panel_bytes,
        int n_threads,
        int least,
        std::span<const int> threads_by_node)
      : n_nodes_(static_cast<int>(threads_by_node.size())),
        least_(least),
        most_(static_cast<int>(std::max<std::int64_t>(least, (256 << 10) / panel_bytes))) {
    ensure(n_nodes_ >= 1 && n_nodes_ <= kMostNodes, "Turns: too many nodes");
    if (n_nodes_ == 1) {
      shares_[0].end = n_panels;
      shares_[0].n_parts = 2 * n_threads;
      return;
    }
    std::int64_t n_all = 0, n_before = 0;
    for (const int n : threads_by_node) n_all += n;
    for (int node = 0; node < n_nodes_; node++) {
      const int n = threads_by_node[node];
      Share& share = shares_[node];
      share.next.store(static_cast<int>(n_panels * n_before / n_all), std::memory_order_relaxed);
      n_before += n;
      share.end = static_cast<int>(n_panels * n_before / n_all);
      share.n_parts = std::max(1, static_cast<int>(std::int64_t{2} * n_threads * n / n_all));
    }
  }

  /// Takes panels [begin, end). @return  false if none is left
  /// @param node  of the calling thread
  bool take(int node, int& begin, int& end) {
    for (int i = 0; i < n_nodes_; i++) {
      if (take_from(shares_[node], begin, end)) return true;
      node = node + 1 < n_nodes_ ? node + 1 : 0;
    }
    return false;
  }

 private:
  struct alignas(64) Share {
    std::atomic<int> next{0};
    int end = 0, n_parts = 1;
  };

  bool take_from(Share& share, int& begin, int& end) const {
    begin = share.next.load();
    do {
      if (begin >= share.end) return false;
      const int n = std::clamp((share.end - begin) / share.n_parts, least_, most_);
      end = std::min(share.end, begin + (n < 4 ? n : n / 4 * 4));
    } while (!share.next.compare_exchange_weak(begin, end));
    return true;
  }

  const int n_nodes_, least_, most_;
  std::array<Share, kMostNodes> shares_;
};

}  // namespace kernels::cpu
