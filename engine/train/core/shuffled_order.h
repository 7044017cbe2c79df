// An endless sequence of epochs over n items, each epoch in a new random order. Element i is a
// function of (seed, i), so a run can be resumed at any place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "engine/data/random.h"

namespace engine {

/// The sequence.
class ShuffledOrder {
 public:
  /// @param n  number of items
  ShuffledOrder(std::size_t n, std::uint64_t seed) : n_(n), seed_(seed) {}

  /// The item at a place of the sequence. Thread-safe.
  std::size_t at(std::int64_t place) const {
    const auto n = static_cast<std::int64_t>(n_);
    // Each thread keeps the last epoch's order, because neighbouring places are mostly in the same
    // epoch.
    thread_local Round round;
    if (round.seed != seed_ || round.number != place / n || round.order.size() != n_) {
      round = {seed_, place / n, std::vector<std::size_t>(n_)};
      std::iota(round.order.begin(), round.order.end(), std::size_t{0});
      Random rng(fnv1a("order/" + std::to_string(seed_) + "/" + std::to_string(place / n)));
      rng.shuffle(round.order);
    }
    return round.order[static_cast<std::size_t>(place % n)];
  }

 private:
  struct Round {
    std::uint64_t seed = 0;
    std::int64_t number = -1;
    std::vector<std::size_t> order;
  };
  std::size_t n_;
  std::uint64_t seed_;
};

}  // namespace engine
