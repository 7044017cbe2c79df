// Random weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace engine {

/// Tensors drawn from N(0, 0.02), or all `norm` if the name ends in "norm.weight". Each value depends
/// only on (seed, name, index).
std::shared_ptr<const TensorSource> random_tensors(std::vector<TensorSpec> specs,
                                                   std::uint64_t seed,
                                                   float norm = 1);

/// The quantile function of the standard normal distribution: linear interpolation in a table, and
/// Newton's method in the tails.
class NormalQuantiles {
 public:
  /// Fills the table.
  NormalQuantiles();

  /// The quantile at probability (bits + 0.5) 2^-32.
  float operator()(std::uint32_t bits) const {
    const std::uint32_t cell = bits >> kCellBits;
    if (cell < kTailCells || cell >= kCells - kTailCells) return tail(bits);
    const float t = static_cast<float>(bits & (kCellSize - 1)) * (1.0f / kCellSize);
    return edges_[cell] + t * (edges_[cell + 1] - edges_[cell]);
  }

  /// The quantile at probability p in (0, 1), to double precision, by Newton's method.
  static double exact(double p);

 private:
  static constexpr std::uint32_t kCells = 1 << 14;
  // cells at both ends, where interpolation is too coarse
  static constexpr std::uint32_t kTailCells = 8;
  static constexpr int kCellBits = 18;
  static constexpr std::uint32_t kCellSize = 1u << kCellBits;

  static float tail(std::uint32_t bits);

  std::vector<float> edges_;  // [kCells + 1], the quantiles of i / kCells
};

}  // namespace engine
