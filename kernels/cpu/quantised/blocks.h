// The fast loops of quantised products (reference.h). A block of rows multiplies 16 outputs; its f32 sums stay in memory
// between blocks of k, which leaves the registers to integer sums. All blocks of rows pass over a chunk of a panel while it is
// in the first-level cache, and prefetch the next chunk, each some blocks of it.
//   Lanes   the instruction set: kRows (most rows of a block), kRowsOfReading (a single pass over at most this many rows does not
//           prefetch), kParts (registers for 16 outputs), and the operations of maddubs.h and vnni.h
#pragma once

#include "kernels/cpu/quantised/reference.h"

namespace kernels::cpu {
namespace {

constexpr int kChunkBlocks = 24;   // most blocks of k in a chunk
constexpr int kSummedBlocks = 16;  // most blocks of rows whose sums are kept for a panel

/// A pass prefetches the block `distance` bytes after block `first`, and after each `every`-th block from it. With `first` =
/// kChunkBlocks, which no pass reaches, it prefetches nothing.
struct NextBlocks {
  std::int64_t distance;
  int first, every;
};
template <class Q>
inline void prefetch_block(const char* at) {
#pragma GCC unroll 12
  for (int line = 0; line < (Q::kBlockBytes + 63) / 64; line++) prefetch(at + 64 * line);
}

// Adds n_k blocks of a panel to sums [kRows, 16].
template <class Q, class Lanes, int kRows>
void multiply_rows(const char* block,
                   const typename Lanes::template Input<Q>* x,
                   int n_k,
                   NextBlocks next,
                   float* sums) {
  constexpr int kParts = Lanes::kParts, kWidth = kPanel / kParts;
  constexpr int kLines = Q::kLineBytes / 64 / Q::kGroups;  // of a group
  for (int b = 0; b < n_k; b++, block += Q::kBlockBytes, x += kRows) {
    if (next.first-- == 0) {
      prefetch_block<Q>(block + next.distance);
      next.first += next.every;
    }
    // The compiler must not keep the sums in registers: it would spill the integer sums instead.
    asm volatile("" ::: "memory");
#pragma GCC unroll 2
    for (int group = 0; group < Q::kGroups; group++) {
      typename Lanes::Dot dot[kRows][kParts];
#pragma GCC unroll 8
      for (int line = 0; line < kLines; line++)
        Lanes::template add_line<Q, kRows>(dot, block, x, group * kLines + line, line == 0);
      const char* values = block + Q::kLineBytes + group * Q::kGroupBytes;
      typename Lanes::Floats scale[kParts], minimum[kParts];
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++) {
        scale[part] = Lanes::template values<Q>(values, part);
        if constexpr (Q::kIs.minimum)
          minimum[part] = Lanes::template values<Q>(values + Q::kValuesBytes, part);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; r++)
#pragma GCC unroll 2
        for (int part = 0; part < kParts; part++) {
          float* at = sums + r * kPanel + part * kWidth;
          const auto scaled = Lanes::mul(Lanes::template dot_of<Q>(dot[r][part], x[r], group),
                                         Lanes::broadcast(&x[r].scale));
          auto sum = Lanes::fma(scaled, scale[part], Lanes::load(at));
          if constexpr (Q::kIs.minimum)
            sum =
                Lanes::fma(minimum[part], Lanes::broadcast(&x[r].words[Q::kFirstSum + group]), sum);
          Lanes::store(at, sum);
        }
    }
  }
}

template <class Q, class Lanes>
using RowsFunction =
    void (*)(const char*, const typename Lanes::template Input<Q>*, int, NextBlocks, float*);

template <class Q, class Lanes, int kRows = Lanes::kRows>
RowsFunction<Q, Lanes> rows_function(int n_rows) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) return rows_function<Q, Lanes, kRows - 1>(n_rows);
  }
  return multiply_rows<Q, Lanes, kRows>;
}

// How some blocks of rows pass over a panel, chunk by chunk.
template <class Q, class Lanes>
struct Passes {
  using X = typename Lanes::template Input<Q>;
  struct Pass {
    RowsFunction<Q, Lanes> multiply;
    const X* x;
    int first_row, n_rows;
  };
  Pass pass[kSummedBlocks];
  int n = 0, first_row = 0, n_rows = 0;
  int n_k = 0, chunk = 0;  // blocks of a panel, and of a chunk but the last
  bool prefetches = false;

  Passes(const MatmulCall& call, const RowBlocks<Lanes::kRows>& rows, int first_block)
      : first_row(rows.begin(first_block)), n_k(call.k / kBlock) {
    for (; n < kSummedBlocks && first_block + n < rows.n; n++) {
      const int row = rows.begin(first_block + n), count = rows.size(first_block + n);
      const X* x = static_cast<const X*>(call.prepared) + static_cast<std::int64_t>(row) * n_k;
      pass[n] = {rows_function<Q, Lanes>(count), x, row, count};
      n_rows += count;
    }
    const int n_chunks = (n_k + kChunkBlocks - 1) / kChunkBlocks;
    chunk = (n_k + n_chunks - 1) / n_chunks;
    prefetches = n > 1 || n_rows > Lanes::kRowsOfReading;
  }
  NextBlocks next_of(int i) const {
    return {std::int64_t{chunk} * Q::kBlockBytes, prefetches ? i : kChunkBlocks, n};
  }
};

template <class Q, class Lanes>
void multiply_panel(const MatmulCall& call, int panel, const Passes<Q, Lanes>& passes) {
  alignas(64) float sums[kSummedBlocks * Lanes::kRows * kPanel];
  for (int r = 0; r < passes.n_rows; r++) f_store(sums + r * kPanel, f_set(0));
  const char* at = static_cast<const char*>(call.panels) + panel * call.panel_bytes;
  for (int begin = 0; begin < passes.n_k; begin += passes.chunk) {
    const int left = passes.n_k - begin, size = left < passes.chunk ? left : passes.chunk;
    for (int i = 0; i < passes.n; i++) {
      const auto& pass = passes.pass[i];
      pass.multiply(at, pass.x + begin * pass.n_rows, size, passes.next_of(i),
                    sums + (pass.first_row - passes.first_row) * kPanel);
    }
    at += static_cast<std::int64_t>(size) * Q::kBlockBytes;
  }
  for (int r = 0; r < passes.n_rows; r++)
    write_sums(call, passes.first_row + r, panel, f_load(sums + r * kPanel));
}

template <class Q, class Lanes>
void multiply_quantised(const MatmulCall& call, int first, int last) {
  const RowBlocks<Lanes::kRows> rows(call.n_rows);
  for (int block = 0; block < rows.n; block += kSummedBlocks) {
    const Passes<Q, Lanes> passes(call, rows, block);
    for (int panel = first; panel < last; panel++) multiply_panel(call, panel, passes);
  }
}

// Multiplies a chunk that stays in the first-level cache, with the fullest block of rows.
template <class Q, class Lanes>
std::int64_t probe_quantised(std::int64_t rounds, float* result) {
  alignas(64) static const char zeros[kChunkBlocks * Q::kBlockBytes] = {};
  static const typename Lanes::template Input<Q> inputs[kChunkBlocks * Lanes::kRows] = {};
  alignas(64) float sums[Lanes::kRows * kPanel] = {*result};
  const char* chunk = zeros;
  const typename Lanes::template Input<Q>* x = inputs;
  // Hides that the values are known and that few of the sums are read.
  asm volatile("" : "+r"(chunk), "+r"(x) : "r"(sums) : "memory");
  const std::int64_t n = (rounds + kChunkBlocks - 1) / kChunkBlocks;
  for (std::int64_t i = 0; i < n; i++)
    multiply_rows<Q, Lanes, Lanes::kRows>(chunk, x, kChunkBlocks, {0, kChunkBlocks, 0}, sums);
  *result = sums[0];
  return n * kChunkBlocks * Lanes::kRows * kPanel * kBlock;
}

/// The kernel of a type with the instructions of Lanes.
template <class Q, class Lanes>
struct BlocksKernel {
  using X = typename Lanes::template Input<Q>;
  static constexpr MatmulKernel kMatmul = {quantised_input_bytes<X>, quantise_rows<X, Lanes::kRows>,
                                           multiply_quantised<Q, Lanes>};
  static constexpr auto kProbe = probe_quantised<Q, Lanes>;
};

inline std::int32_t word_at(const void* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}

}  // namespace
}  // namespace kernels::cpu
