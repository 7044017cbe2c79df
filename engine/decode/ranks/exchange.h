// Communication between the ranks of Lookahead parallelism: a few numbers at a time, no tensors.
// The two calls are collectives as in MPI, so another transport could replace the threads of one
// process (thread_exchange.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace engine {

/// Tokens, counts, or the bits of an f32.
using Numbers = std::vector<std::int32_t>;

/// The endpoint of one rank. All ranks make the same calls in the same order. A call blocks until
/// its data has arrived; if another rank fails, it throws an exception.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// This rank's index, from 0.
  virtual int rank() const = 0;
  /// Number of ranks.
  virtual int n_ranks() const = 0;
  /// Sends the numbers of rank `from` to all ranks; `numbers` of the others are overwritten.
  virtual void broadcast(int from, Numbers& numbers) = 0;
  /// Sends the numbers of every rank to all ranks. Lengths may differ.
  /// @return  [n_ranks]
  virtual std::vector<Numbers> all_gather(std::span<const std::int32_t> own) = 0;
};

}  // namespace engine
