// Quantised products with AMX tiles, bit for bit those of reference.h. tdpbsud multiplies up to 16 rows of signed activations by
// 16 outputs of unsigned weights. Its k is one group of a block, so its int32 sums are the exact sums that get the scales of the
// group. Lines of 8 bits are a weight tile as they are stored; those of 4 bits are unpacked first, a chunk of a panel for all
// blocks of rows. An activation tile is the q of adjacent prepared rows.
//   Tiles   the instructions, on numbered tile registers: AmxTiles (ops_amx_int8.cpp), or plain C++ (tests/kernels/)
#pragma once

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/quantised/blocks.h"

namespace kernels::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileProducts = 4;  // of a step, at most
// Fewer rows are multiplied by Tiles::few_rows(), which is VNNI. The number is a count of the instructions in the source for a
// block of k, 16 outputs and r rows, in which each row of a tile that is loaded or stored is one instruction:
//   Q8_0   tiles 10 + 7.5 r, VNNI 8 + 13 r: tiles need fewer from 1 row on
//   Q4_1   tiles 34 + 6.5 r, VNNI 16 + 14 r: from 3 rows on
// With 8 rows, half a tile, tiles need at most 0.67 of VNNI's. The margin is for tdpbsud, which may take as long for few rows as
// for 16. The times were not measured.
constexpr int kLeastTileRows = 8;

// Product i of a step sums into tile register i.
constexpr int activations_of(int product) {
  return 4 + product % 2;
}
constexpr int weights_of(int product) {
  return 6 + product % 2;
}

template <class Q, class Tiles>
class TilesKernel {
  using X = Input<Q, false>;
  static constexpr int kGroupK = kBlock / Q::kGroups;
  static constexpr int kUnpackedBytes = kBlock * kPanel;  // of a block
  static constexpr int kLinesStride = Q::kIs.nibbles ? kUnpackedBytes : Q::kBlockBytes;

  // How a block of rows passes over a chunk of a panel.
  struct Pass {
    const char* block;
    const char* lines;  // of the block, 8 bits
    const X* x;
    float* sums;  // [n_rows, 16]
    int n_rows;
    bool prefetches;  // the next chunk
  };

  static void configure(int n_rows) {
    TileConfig config(n_rows);
    for (int i = 0; i < 2; i++) {
      config.bytes_per_row[activations_of(i)] = kGroupK;
      config.rows[weights_of(i)] = kGroupK / 4;
    }
    Tiles::configure(config);
  }

  static void unpack(const char* block, int n_blocks, std::uint32_t* lines) {
    const I low = i_set(0x0f0f0f0fu);
    for (int b = 0; b < n_blocks; b++, block += Q::kBlockBytes, lines += kUnpackedBytes / 4)
      for (int line = 0; line < 4; line++) {
        const I q = i_load(reinterpret_cast<const std::uint32_t*>(block + 64 * line));
        i_store(lines + 16 * line, i_and(q, low));
        i_store(lines + 16 * (line + 4), i_and(i_right<4>(q), low));
      }
  }

  using Dots = std::uint32_t[kTileRows * kPanel];

  template <int kProduct, int kProducts>
  static void multiply_groups(const Pass& pass, Dots* dots) {
    if constexpr (kProduct < kProducts) {
      constexpr int kAt = kProduct / Q::kGroups, kFirst = kProduct % Q::kGroups * kGroupK;
      Tiles::template zero<kProduct>();
      Tiles::template load<activations_of(kProduct)>(pass.x[kAt * pass.n_rows].q + kFirst,
                                                     sizeof(X));
      Tiles::template load<weights_of(kProduct)>(pass.lines + kAt * kLinesStride + kFirst * kPanel,
                                                 64);
      Tiles::template dot<kProduct>();
      Tiles::template store<kProduct>(dots[kProduct], 64);
      multiply_groups<kProduct + 1, kProducts>(pass, dots);
    }
  }

  // Adds the next blocks of k to the sums.
  template <int kBlocks>
  static void add_blocks(Pass& pass) {
    constexpr int kGroups = kBlocks * Q::kGroups;
    alignas(64) Dots dots[kGroups];
    multiply_groups<0, kGroups>(pass, dots);
    F scale[kGroups], minimum[kGroups];
#pragma GCC unroll 4
    for (int i = 0; i < kGroups; i++) {
      const int group = i % Q::kGroups;
      const char* block = pass.block + i / Q::kGroups * Q::kBlockBytes;
      const char* values = block + Q::kLineBytes + group * Q::kGroupBytes;
      scale[i] = load_values<Q>(values);
      if constexpr (Q::kIs.minimum) minimum[i] = load_values<Q>(values + Q::kValuesBytes);
      if (pass.prefetches && group == 0) prefetch_block<Q>(block + kChunkBlocks * Q::kBlockBytes);
    }
    for (int r = 0; r < pass.n_rows; r++) {
      F sum = f_load(pass.sums + r * kPanel);
#pragma GCC unroll 4
      for (int i = 0; i < kGroups; i++) {
        const int group = i % Q::kGroups;
        const X& x = pass.x[i / Q::kGroups * pass.n_rows + r];
        I dot = i_load(dots[i] + r * kPanel);
        if constexpr (Q::kCorrects)
          dot = i_add(dot, i_set(static_cast<std::uint32_t>(x.words[group])));
        sum = Tiles::fma(f_mul(f_of_int(dot), f_set(x.scale)), scale[i], sum);
        if constexpr (Q::kIs.minimum) {
          const float x_sum = __builtin_bit_cast(float, x.words[Q::kFirstSum + group]);
          sum = Tiles::fma(minimum[i], f_set(x_sum), sum);
        }
      }
      f_store(pass.sums + r * kPanel, sum);
    }
    pass.block += kBlocks * Q::kBlockBytes;
    pass.lines += kBlocks * kLinesStride;
    pass.x += kBlocks * pass.n_rows;
  }

  static void add_chunk(Pass pass, int n_blocks) {
    constexpr int kBlocks = kTileProducts / Q::kGroups;
    for (; n_blocks >= kBlocks; n_blocks -= kBlocks) add_blocks<kBlocks>(pass);
    for (; n_blocks > 0; n_blocks--) add_blocks<1>(pass);
  }

  // Multiplies blocks of rows from `first`, at most kSummedBlocks of them.
  static void multiply_panel(const MatmulCall& call,
                             const RowBlocks<kTileRows>& rows,
                             int first,
                             int panel) {
    alignas(64) float sums[kSummedBlocks * kTileRows * kPanel];
    alignas(64) std::uint32_t unpacked[kChunkBlocks * kUnpackedBytes / 4];
    const int last = rows.n - first < kSummedBlocks ? rows.n : first + kSummedBlocks;
    const int first_row = rows.begin(first), n_rows = rows.begin(last) - first_row;
    for (int r = 0; r < n_rows; r++) f_store(sums + r * kPanel, f_set(0));
    const int n_k = call.k / kBlock;
    const char* at = static_cast<const char*>(call.panels) + panel * call.panel_bytes;
    for (int begin = 0; begin < n_k; begin += kChunkBlocks) {
      const int size = n_k - begin < kChunkBlocks ? n_k - begin : kChunkBlocks;
      const char* lines = at;
      if constexpr (Q::kIs.nibbles) {
        unpack(at, size, unpacked);
        lines = reinterpret_cast<const char*>(unpacked);
      }
      for (int i = first; i < last; i++) {
        const int row = rows.begin(i), count = rows.size(i);
        const X* x = static_cast<const X*>(call.prepared) + static_cast<std::int64_t>(row) * n_k;
        add_chunk(
            {at, lines, x + begin * count, sums + (row - first_row) * kPanel, count, i == first},
            size);
      }
      at += static_cast<std::int64_t>(size) * Q::kBlockBytes;
    }
    for (int r = 0; r < n_rows; r++)
      write_sums(call, first_row + r, panel, f_load(sums + r * kPanel));
  }

  static void multiply_tiles(const MatmulCall& call, int first, int last) {
    const RowBlocks<kTileRows> rows(call.n_rows);
    // No block of rows is larger than the last. One with a row less loads the row after it too, whose sums nobody reads.
    configure(rows.size(rows.n - 1));
    for (int block = 0; block < rows.n; block += kSummedBlocks)
      for (int panel = first; panel < last; panel++) multiply_panel(call, rows, block, panel);
    Tiles::release();
  }

  static const MatmulKernel& kernel_of(int n_rows) {
    static constexpr MatmulKernel kTiles = {quantised_input_bytes<X>, quantise_rows<X, kTileRows>,
                                            multiply_tiles};
    return n_rows < kLeastTileRows ? Tiles::few_rows().matmul[Q::kNumber] : kTiles;
  }
  static std::int64_t prepared_bytes(int n_rows, int k) {
    return kernel_of(n_rows).prepared_bytes(n_rows, k);
  }
  static void prepare(const float* x,
                      std::int64_t x_stride,
                      int n_rows,
                      int k,
                      int part,
                      int n_parts,
                      void* prepared) {
    kernel_of(n_rows).prepare(x, x_stride, n_rows, k, part, n_parts, prepared);
  }
  static void multiply(const MatmulCall& call, int first, int last) {
    kernel_of(call.n_rows).multiply(call, first, last);
  }

  // Multiplies a chunk that stays in the first-level cache, with 16 rows.
  static std::int64_t probe(std::int64_t rounds, float* result) {
    alignas(64) static const char zeros[kChunkBlocks * Q::kBlockBytes] = {};
    static const X inputs[kChunkBlocks * kTileRows] = {};
    float y[kTileRows * kPanel] = {*result};
    const void* panel = zeros;
    const void* x = inputs;
    asm volatile("" : "+r"(panel), "+r"(x));  // hides that the values are known
    const MatmulCall call = {panel,  sizeof zeros, kPanel, kChunkBlocks * kBlock, x, kTileRows, y,
                             kPanel, nullptr,      false};
    const std::int64_t n = (rounds + kChunkBlocks - 1) / kChunkBlocks;
    configure(kTileRows);
    for (std::int64_t i = 0; i < n; i++)
      multiply_panel(call, RowBlocks<kTileRows>(kTileRows), 0, 0);
    Tiles::release();
    *result = y[0];
    return n * kChunkBlocks * kTileRows * kPanel * kBlock;
  }

 public:
  static constexpr MatmulKernel kMatmul = {prepared_bytes, prepare, multiply};
  static constexpr auto kProbe = probe;
};

}  // namespace
}  // namespace kernels::cpu
