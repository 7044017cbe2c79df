// The fast loops of quantised products (reference.h). A block of rows multiplies 16 outputs; its f32 sums stay in memory
// between blocks of k, which leaves the registers to integer sums. All blocks of rows pass over a chunk of a panel while it is
// in the first-level cache, and prefetch the next chunk in equal parts.
//   Lanes   the instruction set: kRows (most rows of a block), kParts (registers for 16 outputs), and the operations of
//           maddubs.h and vnni.h
#pragma once

#include "kernels/cpu/quantised/reference.h"

namespace kernels::cpu {
namespace {

constexpr int kChunkBlocks = 24;   // most blocks of k in a chunk
constexpr int kSummedBlocks = 16;  // most blocks of rows whose sums are kept for a panel

constexpr std::int64_t kFarAhead = 8192;

/// Memory to prefetch, some lines for each block of k.
struct NextLines {
  const char* at;
  const char* end;
  int lines;
};
inline void prefetch_some(NextLines& ahead) {
  for (int i = 0; i < ahead.lines && ahead.at < ahead.end; i++, ahead.at += 64) prefetch(ahead.at);
}

// Adds n_k blocks of a panel to sums [kRows, 16].
template <class Q, class Lanes, int kRows>
void multiply_rows(const char* block,
                   const typename Lanes::template Input<Q>* x,
                   int n_k,
                   NextLines ahead,
                   float* sums) {
  constexpr int kParts = Lanes::kParts, kWidth = kPanel / kParts;
  constexpr int kLines = Q::kLineBytes / 64 / Q::kGroups;  // of a group
  for (int b = 0; b < n_k; b++, block += Q::kBlockBytes, x += kRows) {
    prefetch_some(ahead);
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
    void (*)(const char*, const typename Lanes::template Input<Q>*, int, NextLines, float*);

template <class Q, class Lanes, int kRows = Lanes::kRows>
RowsFunction<Q, Lanes> rows_function(int n_rows) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) return rows_function<Q, Lanes, kRows - 1>(n_rows);
  }
  return multiply_rows<Q, Lanes, kRows>;
}

// Multiplies blocks of rows [first_block, last_block) by one panel.
template <class Q, class Lanes>
void multiply_panel(const MatmulCall& call,
                    int panel,
                    const RowBlocks<Lanes::kRows>& rows,
                    int first_block,
                    int last_block) {
  alignas(64) float sums[kSummedBlocks * Lanes::kRows * kPanel];
  const int n_k = call.k / kBlock, n_passes = last_block - first_block;
  const int n_chunks = (n_k + kChunkBlocks - 1) / kChunkBlocks;
  const int first_row = rows.begin(first_block), n_rows = rows.begin(last_block) - first_row;
  const char* at = static_cast<const char*>(call.panels) + panel * call.panel_bytes;
  const auto* x = static_cast<const typename Lanes::template Input<Q>*>(call.prepared);
  for (int i = 0; i < n_rows * kPanel; i++) sums[i] = 0;
  for (int chunk = 0; chunk < n_chunks; chunk++) {
    const int begin = block_begin(chunk, n_chunks, n_k);
    const int size = block_begin(chunk + 1, n_chunks, n_k) - begin;
    const std::int64_t bytes = static_cast<std::int64_t>(size) * Q::kBlockBytes;
    // Each pass prefetches its part of the chunk after this one; a single pass, which is faster, looks further ahead.
    const std::int64_t distance = n_passes == 1 && bytes < kFarAhead ? kFarAhead : bytes;
    const std::int64_t part = (bytes / n_passes + 127) / 64 * 64;
    const int lines = static_cast<int>((part / 64 + size - 1) / size);
    for (int pass = 0; pass < n_passes; pass++) {
      const int block = first_block + pass, row = rows.begin(block), count = rows.size(block);
      const char* ahead = at + distance + pass * part;
      rows_function<Q, Lanes>(count)(
          at, x + static_cast<std::int64_t>(row) * n_k + static_cast<std::int64_t>(begin) * count,
          size, {ahead, ahead + part, lines}, sums + (row - first_row) * kPanel);
    }
    at += bytes;
  }
  for (int r = 0; r < n_rows; r++)
    write_sums(call, first_row + r, panel, f_load(sums + r * kPanel));
}

template <class Q, class Lanes>
void multiply_quantised(const MatmulCall& call, int first, int last) {
  const RowBlocks<Lanes::kRows> rows(call.n_rows);
  for (int panel = first; panel < last; panel++)
    for (int block = 0; block < rows.n; block += kSummedBlocks)
      multiply_panel<Q, Lanes>(call, panel, rows, block,
                               block + kSummedBlocks < rows.n ? block + kSummedBlocks : rows.n);
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
    multiply_rows<Q, Lanes, Lanes::kRows>(chunk, x, kChunkBlocks, {chunk, chunk, 0}, sums);
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
