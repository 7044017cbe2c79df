// Reproducible random draws for the generators: a counter-based stream (Philox) and our own bounded
// integers, because the standard library's distributions differ between implementations.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/philox.h"

namespace engine {

/// The FNV-1a hash, 64 bits.
constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

/// A stream of draws. It depends only on the seed.
class Random {
 public:
  /// Starts the stream of that seed.
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  /// The next 32 random bits.
  std::uint32_t bits() {
    if (n_drawn_ % 4 == 0) block_ = kernels::philox(seed_, {n_drawn_ / 4, kStream, 0, 0});
    return block_[n_drawn_++ % 4];
  }

  /// Uniform in 0..n-1 by multiply-shift with rejection (Lemire 2019). @param n  at least 1
  int below(int n) {
    const auto range = static_cast<std::uint32_t>(n);
    std::uint64_t product = std::uint64_t{bits()} * range;
    if (static_cast<std::uint32_t>(product) < range) {
      const std::uint32_t threshold = -range % range;
      while (static_cast<std::uint32_t>(product) < threshold)
        product = std::uint64_t{bits()} * range;
    }
    return static_cast<int>(product >> 32);
  }

  /// Uniform in low..high, both ends included.
  int between(int low, int high) { return low + below(high - low + 1); }

  /// True with probability percent / 100.
  bool chance(int percent) { return below(100) < percent; }

  /// A uniformly drawn item. @param items  not empty; indexed by int
  template <class Container>
  const auto& pick(const Container& items) {
    return items[below(static_cast<int>(std::size(items)))];
  }

  /// A uniformly drawn string of a braced list: rng.one_of({"a", "b"}).
  std::string_view one_of(std::initializer_list<std::string_view> wordings) {
    return wordings.begin()[below(static_cast<int>(wordings.size()))];
  }

  /// Index i with probability weights[i] / sum(weights).
  int weighted(std::initializer_list<int> weights) {
    int total = 0;
    for (const int w : weights) total += w;
    int draw = below(total);
    int index = 0;
    for (const int w : weights) {
      if (draw < w) return index;
      draw -= w;
      index++;
    }
    return index - 1;
  }

  /// Permutes the items uniformly (Fisher-Yates).
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (int i = static_cast<int>(items.size()) - 1; i > 0; i--)
      std::swap(items[i], items[below(i + 1)]);
  }

 private:
  static constexpr std::uint32_t kStream = 0x44415441;  // differs from the streams of decoding
  std::uint64_t seed_;
  std::uint32_t n_drawn_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

}  // namespace engine
