// Counter-based random numbers. A number depends only on (seed, position, stream, block), so a
// replay draws the same numbers, and two uses never share a number.
//   source  Philox4x32-10, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"
//   key     (seed low, seed high);  counter (position, stream, vocab_block, 0)
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace kernels {

/// The use of a random number. Each use has its own stream.
enum class RandomStream : std::uint32_t {
  TargetGumbel = 0,
  DraftGumbel = 1,
  AcceptUniform = 2,
  Residual = 3,
  WindowInit = 4,
  Refill = 5,
};

/// Philox4x32-10: four random words for a key and a counter.
inline std::array<std::uint32_t, 4> philox(std::uint64_t seed,
                                           std::array<std::uint32_t, 4> counter) {
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

/// 32 random bits for item `index` of a stream: a token id, or the number of a draw.
inline std::uint32_t random_bits(std::uint64_t seed,
                                 std::uint32_t stream,
                                 std::uint32_t position,
                                 std::uint32_t index) {
  return philox(seed, {position, stream, index / 4, 0})[index % 4];
}

/// Uniform in the open interval (0, 1): (x + 0.5) 2^-32, exact in double.
inline double uniform_from_bits(std::uint32_t x) {
  return (x + 0.5) * 0x1p-32;
}

/// Standard Gumbel noise, -log(-log u), for the Gumbel-max trick. In double, because the inner logarithm loses its
/// precision near u = 1 in f32.
inline double gumbel_from_bits(std::uint32_t x) {
  return -std::log(-std::log(uniform_from_bits(x)));
}

}  // namespace kernels
