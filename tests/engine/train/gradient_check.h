// Finite differences of a loss, for tests of backward passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace engine::test {

/// Reproducible pseudo-random numbers in [-1, 1].
inline std::vector<float> spread(std::size_t n, std::uint64_t seed) {
  std::vector<float> values(n);
  std::uint64_t state = seed * 2862933555777941757u + 3037000493u;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<double>(state >> 11) * 0x1p-52 - 1.0);
  }
  return values;
}

/// Compares `gradient` with the difference of fourth order, (8 (loss(x + h) - loss(x - h)) -
/// (loss(x + 2h) - loss(x - 2h))) / 12h, at every `stride`-th element of x. Forward passes are in
/// f32: with h = 2^-6 and a loss near 1, rounding causes errors of about 1e-7 / h = 1e-5, the fifth
/// derivative of about h^4 / 30 = 2e-9. `tolerance` is absolute, for gradients of size about 1.
inline void expect_gradient(std::vector<float>& x,
                            const std::vector<float>& gradient,
                            const std::function<double()>& loss,
                            const std::string& what,
                            std::size_t stride = 1,
                            double tolerance = 4e-4,
                            float h = 0x1p-6f) {
  ASSERT_EQ(x.size(), gradient.size()) << what;
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    const float kept = x[i];
    const auto rise = [&](float step) {
      x[i] = kept + step;
      const double above = loss();
      x[i] = kept - step;
      const double below = loss();
      x[i] = kept;
      return above - below;
    };
    const double expected = (8 * rise(h) - rise(2 * h)) / (12.0 * static_cast<double>(h));
    largest = std::max(largest, std::abs(expected));
    ASSERT_NEAR(gradient[i], expected, tolerance * (1 + std::abs(expected))) << what << " " << i;
  }
  EXPECT_GT(largest, 10 * tolerance)
      << what << ": the loss does not change, so zero gradients would pass";
}

/// The sum of y[i] d[i]: a loss with gradient d.
inline double dot(const std::vector<float>& y, const std::vector<float>& d) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); i++) sum += static_cast<double>(y[i]) * d[i];
  return sum;
}

}  // namespace engine::test
