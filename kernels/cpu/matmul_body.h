// y = x w^T over panels of 16 outputs. A SIMD lane is an output, k runs in order, and each row has its own registers, so no sum
// depends on other rows, on the number of panels in a pass or on threads (batch invariance). Activations are prepared in
// blocks of rows, [k, rows of the block], so that the values of one k are adjacent.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

constexpr int kPrefetchBytes = 4096;

inline int n_blocks_of(int n_rows) {
  return (n_rows + kMaxBlockRows - 1) / kMaxBlockRows;
}
inline int block_begin(int block, int n_blocks, int n_rows) {
  return static_cast<int>(static_cast<std::int64_t>(n_rows) * block / n_blocks);
}

// A multiplication rule: kLineBytes of a panel hold kSteps steps of k for 16 outputs. X is a row's input to a step, and a step
// spans kSpan values of k.
struct MulF32 {
  using X = float;
  static constexpr int kLineBytes = 64, kSteps = 1, kSpan = 1;
  struct Line {
    F step[1];
  };
  static Line load(const char* p) { return {{f_load(reinterpret_cast<const float*>(p))}}; }
  static F step(F sum, F w, X x) { return f_fma(f_set(x), w, sum); }
  static F prepared(F x) { return x; }
};
struct MulF16 {
  using X = float;
  static constexpr int kLineBytes = 32, kSteps = 1, kSpan = 1;
  struct Line {
    F step[1];
  };
  static Line load(const char* p) {
    return {{f_load_f16(reinterpret_cast<const std::uint16_t*>(p))}};
  }
  static F step(F sum, F w, X x) { return f_fma(f_set(x), w, sum); }
  static F prepared(F x) { return x; }
};
struct MulBF16 {
  using X = float;
  static constexpr int kLineBytes = 64, kSteps = 2, kSpan = 1;
  struct Line {
    F step[2];
  };
  static Line load(const char* p) {
    const I pair = i_load(reinterpret_cast<const std::uint32_t*>(p));
    return {{f_bits(i_left<16>(pair)), f_bits(i_and(pair, i_set(0xffff0000u)))}};
  }
  static F step(F sum, F w, X x) { return f_fma(f_set(x), w, sum); }
  static F prepared(F x) { return rounded_to_bf16(x); }
};

template <class Mul>
inline int n_lines_of(int k) {
  constexpr int kPerLine = Mul::kSteps * Mul::kSpan;
  return (k + kPerLine - 1) / kPerLine;
}

template <class Mul>
std::int64_t prepared_bytes(int n_rows, int k) {
  return static_cast<std::int64_t>(n_lines_of<Mul>(k)) * Mul::kSteps * n_rows *
         static_cast<int>(sizeof(typename Mul::X));
}

inline void write_sums(const MatmulCall& call, int row, int panel, F sum) {
  const int first = panel * kPanel;
  const int n = call.n - first;
  float* y = call.y + row * call.y_stride + first;
  if (call.bias) sum = f_add(sum, f_load_part(call.bias + first, n));
  if (call.add) sum = f_add(sum, f_load_part(y, n));
  if (n >= kPanel)
    f_store(y, sum);
  else
    f_store_part(y, sum, n);
}

// kRows rows times kPanels panels, with all sums in registers.
template <class Mul, int kRows, int kPanels>
void multiply_block(const MatmulCall& call, int panel, int first_row, const typename Mul::X* x) {
  const char* at = static_cast<const char*>(call.panels) + panel * call.panel_bytes;
  const std::int64_t panel_bytes = call.panel_bytes;
  const int n_lines = n_lines_of<Mul>(call.k);
  F sum[kPanels][kRows];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; p++)
#pragma GCC unroll 24
    for (int r = 0; r < kRows; r++) sum[p][r] = f_set(0);
  for (int line = 0; line < n_lines; line++) {
    typename Mul::Line w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; p++) {
      w[p] = Mul::load(at + p * panel_bytes);
      prefetch(at + p * panel_bytes + kPrefetchBytes);
    }
    at += Mul::kLineBytes;
#pragma GCC unroll 2
    for (int s = 0; s < Mul::kSteps; s++) {
#pragma GCC unroll 24
      for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; p++) sum[p][r] = Mul::step(sum[p][r], w[p].step[s], x[r]);
      x += kRows;
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; p++)
#pragma GCC unroll 24
    for (int r = 0; r < kRows; r++) write_sums(call, first_row + r, panel + p, sum[p][r]);
}

template <class Mul>
using BlockFunction = void (*)(const MatmulCall&, int, int, const typename Mul::X*);

// Selects the instance for n_rows rows. It computes as many panels at a time as fit in registers,
// or only one.
template <class Mul, int kRows = kMaxBlockRows>
BlockFunction<Mul> block_function(int n_rows, bool one_panel) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) return block_function<Mul, kRows - 1>(n_rows, one_panel);
  }
  if (one_panel) return multiply_block<Mul, kRows, 1>;
  return multiply_block<Mul, kRows, panels_per_pass(kRows)>;
}

template <class Mul>
void multiply_panels(const MatmulCall& call, int first, int last) {
  const auto* x = static_cast<const typename Mul::X*>(call.prepared);
  const std::int64_t x_per_row = static_cast<std::int64_t>(n_lines_of<Mul>(call.k)) * Mul::kSteps;
  const int n_blocks = n_blocks_of(call.n_rows);
  const int most_rows = (call.n_rows + n_blocks - 1) / n_blocks;
  const int group = panels_per_pass(most_rows);
  for (int panel = first; panel < last; panel += group) {
    const bool whole = panel + group <= last;
    const int end = whole ? panel + group : last;
    for (int block = 0; block < n_blocks; block++) {
      const int row = block_begin(block, n_blocks, call.n_rows);
      const int rows = block_begin(block + 1, n_blocks, call.n_rows) - row;
      const bool together = whole && panels_per_pass(rows) == group;
      const BlockFunction<Mul> multiply = block_function<Mul>(rows, !together);
      for (int p = panel; p < end; p += together ? group : 1)
        multiply(call, p, row, x + row * x_per_row);
    }
  }
}

// Prepares f32 activations block by block; values past k are 0. The parts divide the rows among
// them.
template <class Mul>
void prepare_rows(const float* x,
                  std::int64_t x_stride,
                  int n_rows,
                  int k,
                  int part,
                  int n_parts,
                  void* prepared) {
  auto* to = static_cast<float*>(prepared);
  const int steps = n_lines_of<Mul>(k) * Mul::kSteps;
  const int n_blocks = n_blocks_of(n_rows);
  for (int block = 0; block < n_blocks; block++) {
    const int begin = block_begin(block, n_blocks, n_rows);
    const int rows = block_begin(block + 1, n_blocks, n_rows) - begin;
    float* block_to = to + static_cast<std::int64_t>(begin) * steps;
    for (int r = 0; r < rows; r++) {
      if ((begin + r) % n_parts != part) continue;
      const float* from = x + (begin + r) * x_stride;
      for (int i = 0; i < steps; i += 16) {
        float lanes[16];
        f_store(lanes, Mul::prepared(f_load_part(from + i, k - i > 0 ? k - i : 0)));
        for (int j = 0; j < 16 && i + j < steps; j++)
          block_to[static_cast<std::int64_t>(i + j) * rows + r] = lanes[j];
      }
    }
  }
}

template <class Mul>
MatmulKernel matmul_kernel() {
  return {prepared_bytes<Mul>, prepare_rows<Mul>, multiply_panels<Mul>};
}

}  // namespace
}  // namespace kernels::cpu
