// What ranks that decode one text together tell each other: a few numbers at a time, no tensors.
// The calls are two of MPI's, so that another transport than threads of one process
// (engine/run/thread_exchange.h) can stand behind them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace engine {

/// Tokens, counts, or the bits of an f32.
using Numbers = std::vector<std::int32_t>;

/// One rank's end. All ranks make the same calls in the same order; a call returns once what it
/// brings is there, whatever failed elsewhere ends it with an exception.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;  // from 0
  virtual int n_ranks() const = 0;
  /// What rank `from` gives comes to all; the others' `numbers` are overwritten.
  virtual void broadcast(int from, Numbers& numbers) = 0;
  /// What each rank gives comes to all, by rank. Lengths may differ.
  virtual std::vector<Numbers> all_gather(std::span<const std::int32_t> own) = 0;
};

}  // namespace engine
