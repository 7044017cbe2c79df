// Random weights for any list of tensors, as for a model's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine {

/// Drawn from N(0, 0.02), ones where a name ends in "norm.weight"; a value is a function of (seed,
/// name, index) alone.
std::shared_ptr<const TensorSource> random_tensors(std::vector<TensorSpec> specs,
                                                   std::uint64_t seed);

/// The quantile function of the standard normal distribution: a table, and Newton's method in the
/// tails.
class NormalQuantiles {
 public:
  NormalQuantiles();

  /// The x below which a standard normal falls with probability (bits + 0.5) 2^-32.
  float operator()(std::uint32_t bits) const {
    const std::uint32_t cell = bits >> kCellBits;
    if (cell < kTailCells || cell >= kCells - kTailCells) return tail(bits);
    const float t = static_cast<float>(bits & (kCellSize - 1)) * (1.0f / kCellSize);
    return edges_[cell] + t * (edges_[cell + 1] - edges_[cell]);
  }

  /// The same by Newton's method, to double precision; p in (0, 1).
  static double exact(double p);

 private:
  static constexpr std::uint32_t kCells = 1 << 14;
  static constexpr std::uint32_t kTailCells = 8;  // beyond, a straight line in a cell is too coarse
  static constexpr int kCellBits = 18;
  static constexpr std::uint32_t kCellSize = 1u << kCellBits;

  static float tail(std::uint32_t bits);

  std::vector<float> edges_;  // [kCells + 1], the quantiles of i / kCells
};

}  // namespace engine
