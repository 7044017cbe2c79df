// y = x w^T with quantised weights. The activations of a row are quantised in blocks of 32 k: int8 with one f32 scale. Integer
// sums are exact; f32 sums take the blocks in order of k, with the same operations in every instruction set:
//   dot = sum of (q + offset) * x - offset * sum of x    for each group of a block, int32
//   sum = fma(f32(dot) * x_scale, w_scale, sum), then sum = fma(minimum, x_scale * sum of x, sum)
// So all instruction sets give the same bits, and a row's bits do not depend on other rows. The loops of this file are the
// reference; blocks.h has the fast ones.
#pragma once

#include <type_traits>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/matmul_body.h"
#include "kernels/cpu/quantised/layout.h"

namespace kernels::cpu {
namespace {

/// A quantised type's sizes; kType counts from kFirstQuantised.
template <int kType>
struct Quantised {
  static constexpr int kNumber = kFirstQuantised + kType;
  static constexpr QuantisedType kIs = kQuantisedTypes[kType];
  static constexpr int kGroups = kIs.groups;
  static constexpr int kLineBytes = kIs.nibbles ? 256 : 512;
  static constexpr int kValuesBytes = kPanel * (kIs.halves ? 2 : 4);
  static constexpr int kGroupBytes = kValuesBytes * (kIs.minimum ? 2 : 1);
  static constexpr int kBlockBytes = kLineBytes + kGroups * kGroupBytes;
  static constexpr bool kCorrects = kIs.offset != 0;
  static constexpr int kFirstSum = kCorrects ? kGroups : 0;  // in Input::words
};

/// The prepared activations of a block of one row. kPairs: q has 16 bits, and four q are in the order 0, 2, 1, 3.
template <class Q, bool kPairs>
struct Input {
  using Element = std::conditional_t<kPairs, std::int16_t, std::int8_t>;
  Element q[kBlock];
  float scale;
  /// For each group: -offset * sum of q, if offset is not 0; then, if the type has minima, for each group the bits of
  /// the float scale * sum of q.
  std::int32_t words[Q::kGroups * (Q::kCorrects + Q::kIs.minimum)];
};

// Rounds to the nearest integer, ties to even, for |x| <= 2^22: the low bits of x + 1.5 * 2^23.
inline std::int32_t rounded_bits(float x) {
  return __builtin_bit_cast(std::int32_t, x + 12582912.0f) - 0x4b400000;
}

struct BlockScale {
  float scale, inverse;
  std::uint32_t mask;  // of the bits of x
};
// The scale is max |x| / 127. Blocks below 2^-100 become 0, because their inverse may overflow. If a value is not finite,
// the scale is NaN and x is masked to 0.
inline BlockScale scale_of(const float* x) {
  std::int32_t top = 0;
  for (int i = 0; i < kBlock; i++) {
    const std::int32_t magnitude = __builtin_bit_cast(std::int32_t, x[i]) & 0x7fffffff;
    top = magnitude > top ? magnitude : top;
  }
  if (top >= 0x7f800000) return {__builtin_nanf(""), 0, 0};
  const float largest = __builtin_bit_cast(float, top);
  if (largest < 0x1p-100f) return {0, 0, 0};
  return {largest / 127.0f, 127.0f / largest, ~0u};
}

template <class Q, bool kPairs>
inline void quantise_block(const float* x, Input<Q, kPairs>& to) {
  const auto [scale, inverse, mask] = scale_of(x);
  std::int32_t q[kBlock];
  for (int i = 0; i < kBlock; i++)
    q[i] = rounded_bits(__builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x[i]) & mask) *
                        inverse);
  for (int i = 0; i < kBlock; i += 4) {
    constexpr int kOrder[] = {0, kPairs ? 2 : 1, kPairs ? 1 : 2, 3};
    for (int j = 0; j < 4; j++)
      to.q[i + j] = static_cast<typename Input<Q, kPairs>::Element>(q[i + kOrder[j]]);
  }
  to.scale = scale;
  for (int group = 0; group < Q::kGroups; group++) {
    constexpr int kSize = kBlock / Q::kGroups;
    std::int32_t sum = 0;
    for (int i = 0; i < kSize; i++) sum += q[group * kSize + i];
    if constexpr (Q::kCorrects) to.words[group] = -Q::kIs.offset * sum;
    if constexpr (Q::kIs.minimum)
      to.words[Q::kFirstSum + group] =
          __builtin_bit_cast(std::int32_t, scale * static_cast<float>(sum));
  }
}

template <class X>
std::int64_t quantised_input_bytes(int n_rows, int k) {
  return static_cast<std::int64_t>(n_rows) * (k / kBlock) * static_cast<int>(sizeof(X));
}

/// Blocks of rows, of kRows at most.
template <int kRows>
struct RowBlocks {
  explicit RowBlocks(int rows) : n_rows(rows), n((rows + kRows - 1) / kRows) {}
  int begin(int block) const { return block_begin(block, n, n_rows); }
  int size(int block) const { return begin(block + 1) - begin(block); }
  int n_rows, n;
};

/// Prepares activations as [block of rows, block of k, row of the block].
template <class X, int kRows>
void quantise_rows(const float* x,
                   std::int64_t x_stride,
                   int n_rows,
                   int k,
                   int part,
                   int n_parts,
                   void* prepared) {
  const int n_k = k / kBlock;
  const RowBlocks<kRows> blocks(n_rows);
  for (int block = 0; block < blocks.n; block++) {
    const int begin = blocks.begin(block), rows = blocks.size(block);
    auto* to = static_cast<X*>(prepared) + static_cast<std::int64_t>(begin) * n_k;
    for (int r = 0; r < rows; r++) {
      if ((begin + r) % n_parts != part) continue;
      const float* from = x + (begin + r) * x_stride;
      for (int b = 0; b < n_k; b++) quantise_block(from + b * kBlock, to[b * rows + r]);
    }
  }
}

template <class Q>
inline F load_values(const char* p) {
  if constexpr (Q::kIs.halves)
    return f_load_f16(reinterpret_cast<const std::uint16_t*>(p));
  else
    return f_load(reinterpret_cast<const float*>(p));
}

// The exact integer sums of a group for the 16 outputs.
template <class Q>
inline I group_dots(const char* block, const Input<Q, false>& x, int group) {
  constexpr int kSize = kBlock / Q::kGroups;
  const auto* lines = reinterpret_cast<const std::uint8_t*>(block);
  std::uint32_t dots[kPanel];
  for (int lane = 0; lane < kPanel; lane++) {
    std::int32_t dot = 0;
    if constexpr (Q::kCorrects) dot = x.words[group];
    for (int i = group * kSize; i < (group + 1) * kSize; i++) {
      const int at = Q::kIs.nibbles ? i % 16 : i;
      const int byte = lines[at / 4 * 64 + lane * 4 + at % 4];
      const int q = !Q::kIs.nibbles ? byte : i < 16 ? byte & 15 : byte >> 4;
      dot += q * x.q[i];
    }
    dots[lane] = static_cast<std::uint32_t>(dot);
  }
  return i_load(dots);
}

// One rounding, which f_fma of vec_scalar.h does not promise.
inline F fused(F a, F b, F c) {
  float x[kPanel], y[kPanel], z[kPanel];
  f_store(x, a);
  f_store(y, b);
  f_store(z, c);
  for (int i = 0; i < kPanel; i++) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return f_load(z);
}

template <class Q>
inline F add_block(F total, const char* block, const Input<Q, false>& x) {
  const char* values = block + Q::kLineBytes;
  for (int group = 0; group < Q::kGroups; group++, values += Q::kGroupBytes) {
    const F dots = f_of_int(group_dots<Q>(block, x, group));
    total = fused(f_mul(dots, f_set(x.scale)), load_values<Q>(values), total);
    if constexpr (Q::kIs.minimum)
      total = fused(load_values<Q>(values + Q::kValuesBytes),
                    f_set(__builtin_bit_cast(float, x.words[Q::kFirstSum + group])), total);
  }
  return total;
}

template <class Q>
void multiply_reference(const MatmulCall& call, int first, int last) {
  const int n_k = call.k / kBlock;
  for (int panel = first; panel < last; panel++) {
    const char* blocks = static_cast<const char*>(call.panels) + panel * call.panel_bytes;
    const auto* x = static_cast<const Input<Q, false>*>(call.prepared);
    for (int r = 0; r < call.n_rows; r++) {
      F total = f_set(0);
      for (int b = 0; b < n_k; b++) total = add_block<Q>(total, blocks + b * Q::kBlockBytes, *x++);
      write_sums(call, r, panel, total);
    }
  }
}

// Multiplies one block of 16 outputs again and again.
template <class Q>
std::int64_t probe_reference(std::int64_t rounds, float* result) {
  const char block[Q::kBlockBytes] = {1};
  Input<Q, false> x = {};
  F total = f_set(*result);
  for (std::int64_t round = 0; round < rounds; round++) {
    x.q[0] = static_cast<std::int8_t>(round);
    total = add_block<Q>(total, block, x);
  }
  *result = f_sum(total);
  return rounds * kPanel * kBlock;
}

template <class Q>
struct ReferenceKernel {
  static constexpr MatmulKernel kMatmul = {quantised_input_bytes<Input<Q, false>>,
                                           quantise_rows<Input<Q, false>, 1>,
                                           multiply_reference<Q>};
  static constexpr auto kProbe = probe_reference<Q>;
};

/// Fills a table's quantised types with Kernel<Quantised<type>>.
template <template <class> class Kernel, int kType = 0>
void add_quantised(CpuKernels& table) {
  using Made = Kernel<Quantised<kType>>;
  table.matmul[kFirstQuantised + kType] = Made::kMatmul;
  table.probe_multiply[kFirstQuantised + kType] = Made::kProbe;
  if constexpr (kType + 1 < kQuantisedCount) add_quantised<Kernel, kType + 1>(table);
}

}  // namespace
}  // namespace kernels::cpu
