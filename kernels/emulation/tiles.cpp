// Tensor cores: products of tiles and loads of tiles from shared memory, for a whole warp. The emulation spends most of its
// time here.
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/emulation/launched.h"

namespace kernels::emulation {
namespace {

using Row = float __attribute__((vector_size(32)));
using Pair = std::array<float, 2>;

/// Both halves of a register, the lower one first.
template <Half kType>
inline __attribute__((always_inline)) Pair widened(unsigned halves) {
  if constexpr (kType == Half::Bf16)
    return {std::bit_cast<float>(halves << 16), std::bit_cast<float>(halves & 0xffff0000u)};
  else
    return {f32_of_f16(halves & 0xffffu), f32_of_f16(halves >> 16)};
}

template <Half kType>
inline __attribute__((always_inline)) void multiply(void* const* payloads) {
  float a[16][16];
  alignas(32) float b[16][8], d[16][8];
  for (int lane = 0; lane < 32; lane++) {
    const auto& own = *static_cast<const TileOperands*>(payloads[lane]);
    const int row = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 4; i++) {
      const Pair of_a = widened<kType>(own.a[i]);
      std::memcpy(&a[row + i % 2 * 8][pair + i / 2 * 8], &of_a, sizeof of_a);
    }
    for (int i = 0; i < 2; i++) {
      const Pair of_b = widened<kType>(own.b[i]);
      b[pair + i * 8][row] = of_b[0], b[pair + i * 8 + 1][row] = of_b[1];
      std::memcpy(&d[row + i * 8][pair], own.d + 2 * i, sizeof(Pair));
    }
  }
  for (int row = 0; row < 16; row++) {
    Row sum, products;
    std::memcpy(&sum, d[row], sizeof sum);
    for (int k = 0; k < 16; k++) {
      std::memcpy(&products, b[k], sizeof products);
      products *= a[row][k];  // exact, unless a product of bf16 leaves the range of f32
      sum += products;
    }
    std::memcpy(d[row], &sum, sizeof sum);
  }
  for (int lane = 0; lane < 32; lane++) {
    const auto& own = *static_cast<const TileOperands*>(payloads[lane]);
    const int row = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 2; i++) std::memcpy(own.d + 2 * i, &d[row + i * 8][pair], sizeof(Pair));
  }
}
inline __attribute__((always_inline)) void multiply_any(void* const* payloads) {
  if (static_cast<const TileOperands*>(payloads[0])->type == Half::Bf16)
    multiply<Half::Bf16>(payloads);
  else
    multiply<Half::F16>(payloads);
}

#if defined(__x86_64__)
// Without FMA: rounds every product before the addition.
__attribute__((target("avx2"))) void multiply_avx2(void* const* payloads) {
  multiply_any(payloads);
}
#endif

}  // namespace

void multiply_fragments(void* const* payloads, unsigned lanes) {
  expect_whole_warp(lanes);
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return multiply_avx2(payloads);
#endif
  multiply_any(payloads);
}

template <bool kTransposed>
void share_tiles(void* const* payloads, unsigned lanes) {
  expect_whole_warp(lanes);
  const auto place_of_lane = [&](int lane) { return *static_cast<TilePlaces*>(payloads[lane]); };
  for (int tile = 0; tile < 4; tile++) {
    std::uint16_t halves[8][8];
    for (int i = 0; i < 8; i++)
      std::memcpy(halves[i], place_of_lane(tile * 8 + i).row, sizeof halves[i]);
    for (int lane = 0; lane < 32; lane++) {
      const int line = lane / 4, along = lane % 4 * 2;
      unsigned& to = place_of_lane(lane).tiles[tile];
      if constexpr (kTransposed)
        to = halves[along][line] | unsigned{halves[along + 1][line]} << 16;
      else
        std::memcpy(&to, &halves[line][along], sizeof to);
    }
  }
}
template void share_tiles<false>(void* const*, unsigned);
template void share_tiles<true>(void* const*, unsigned);

}  // namespace kernels::emulation
