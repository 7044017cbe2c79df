// The standard normal distribution's quantile function, fast: a table between, Newton in the tails.
#pragma once

#include <cstdint>
#include <vector>

namespace engine {

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
