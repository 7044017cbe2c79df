// AMX: multiplies bf16 weights by tiles of 16 rows x 32 k x 16 outputs; everything else is AVX-512 with VNNI. The 16 lines of a panel
// are a weight tile. An output sums its tiles in order of k, and inside a tile in the processor's fixed order. Tile t always
// holds k in [32 t, 32 t + 32), so neither other rows nor zeros appended to k change a bit (batch invariance).
#include "kernels/cpu/vec_avx512.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/matmul_body.h"

namespace kernels::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileK = 32;
constexpr int kTileBytes = 1024;
constexpr int kTilePrefetchBytes = 8192;

inline int n_tiles_of(int k) {
  return (k + kTileK - 1) / kTileK;
}

// Activations: [row block, tile of k, 16 rows, 32 values]; the last block may have fewer rows.
std::int64_t tiles_bytes(int n_rows, int k) {
  return static_cast<std::int64_t>((n_rows + kTileRows - 1) / kTileRows) * n_tiles_of(k) *
         kTileBytes;
}

void prepare_tiles(const float* x,
                   std::int64_t x_stride,
                   int n_rows,
                   int k,
                   int part,
                   int n_parts,
                   void* prepared) {
  const int n_tiles = n_tiles_of(k);
  for (int row = part; row < n_rows; row += n_parts) {
    char* to = static_cast<char*>(prepared) +
               static_cast<std::int64_t>(row / kTileRows) * n_tiles * kTileBytes +
               row % kTileRows * 64;
    const float* from = x + row * x_stride;
    for (int t = 0; t < n_tiles; t++) {
      const int left = k - t * kTileK;
      const F low = f_load_part(from + t * kTileK, left);
      const F high = f_load_part(from + t * kTileK + 16, left > 16 ? left - 16 : 0);
      _mm512_storeu_si512(to + static_cast<std::int64_t>(t) * kTileBytes,
                          (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
  }
}

// Tile registers: sums in 0 and 1 (two panels of the first block of rows) and 2 and 3 (second block), activations in 4 and 5,
// weights in 6 and 7.
void configure(int first_rows, int second_rows) {
  TileConfig config(kTileRows);
  const auto first = static_cast<std::uint8_t>(first_rows);
  const auto second = static_cast<std::uint8_t>(second_rows ? second_rows : first_rows);
  config.rows[0] = config.rows[1] = config.rows[4] = first;
  config.rows[2] = config.rows[3] = config.rows[5] = second;
  load_config(config);
}

// Prefetches into L2, because in L1 the weights would evict the activations. (With L1 the tile loop
// over shape M took 15 % longer at 24 and 32 rows.)
inline void prefetch_tile(const char* p) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) _mm_prefetch(p + kTilePrefetchBytes + 64 * i, _MM_HINT_T1);
}

// Tile numbers are part of the instruction, so the code cannot loop over them.
template <int kTile>
inline void store_tile(void* to, std::int64_t stride_bytes) {
  if constexpr (kTile == 0) _tile_stored(0, to, stride_bytes);
  if constexpr (kTile == 1) _tile_stored(1, to, stride_bytes);
  if constexpr (kTile == 2) _tile_stored(2, to, stride_bytes);
  if constexpr (kTile == 3) _tile_stored(3, to, stride_bytes);
}

template <int kTile>
inline void write_tile(const MatmulCall& call, int row, int n_rows, int panel) {
  if (!call.bias && !call.add && (panel + 1) * kPanel <= call.n) {
    store_tile<kTile>(call.y + row * call.y_stride + panel * kPanel, call.y_stride * 4);
    return;
  }
  alignas(64) float sums[kTileRows][16];
  store_tile<kTile>(sums, 64);
  for (int r = 0; r < n_rows; r++) write_sums(call, row + r, panel, f_load(sums[r]));
}

template <int kPanels>
void one_block(const MatmulCall& call, int panel, int row, int n_rows) {
  const std::int64_t bytes = call.panel_bytes;
  const int n_tiles = n_tiles_of(call.k);
  const char* w = static_cast<const char*>(call.panels) + panel * bytes;
  const char* x = static_cast<const char*>(call.prepared) +
                  static_cast<std::int64_t>(row / kTileRows) * n_tiles * kTileBytes;
  _tile_zero(0);
  if (kPanels > 1) _tile_zero(1);
  for (int t = 0; t < n_tiles; t++, w += kTileBytes, x += kTileBytes) {
    _tile_loadd(4, x, 64);
    _tile_loadd(6, w, 64);
    prefetch_tile(w);
    _tile_dpbf16ps(0, 4, 6);
    if (kPanels > 1) {
      _tile_loadd(7, w + bytes, 64);
      prefetch_tile(w + bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
  }
  write_tile<0>(call, row, n_rows, panel);
  if (kPanels > 1) write_tile<1>(call, row, n_rows, panel + 1);
}

// Multiplies a block of 16 rows and a second one of up to 16 rows.
template <int kPanels>
void two_blocks(const MatmulCall& call, int panel, int row, int second_rows) {
  const std::int64_t bytes = call.panel_bytes;
  const int n_tiles = n_tiles_of(call.k);
  const std::int64_t block_bytes = static_cast<std::int64_t>(n_tiles) * kTileBytes;
  const char* w = static_cast<const char*>(call.panels) + panel * bytes;
  const char* x = static_cast<const char*>(call.prepared) + row / kTileRows * block_bytes;
  _tile_zero(0);
  _tile_zero(2);
  if (kPanels > 1) {
    _tile_zero(1);
    _tile_zero(3);
  }
  for (int t = 0; t < n_tiles; t++, w += kTileBytes, x += kTileBytes) {
    _tile_loadd(4, x, 64);
    _tile_loadd(6, w, 64);
    prefetch_tile(w);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, x + block_bytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    if (kPanels > 1) {
      _tile_loadd(7, w + bytes, 64);
      prefetch_tile(w + bytes);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  write_tile<0>(call, row, kTileRows, panel);
  write_tile<2>(call, row + kTileRows, second_rows, panel);
  if (kPanels > 1) {
    write_tile<1>(call, row, kTileRows, panel + 1);
    write_tile<3>(call, row + kTileRows, second_rows, panel + 1);
  }
}

void multiply_tiles(const MatmulCall& call, int first, int last) {
  const int n_pairs = call.n_rows / (2 * kTileRows);
  if (n_pairs) {
    configure(kTileRows, kTileRows);
    int panel = first;
    for (; panel + 2 <= last; panel += 2)
      for (int i = 0; i < n_pairs; i++) two_blocks<2>(call, panel, 2 * kTileRows * i, kTileRows);
    for (; panel < last; panel++)
      for (int i = 0; i < n_pairs; i++) two_blocks<1>(call, panel, 2 * kTileRows * i, kTileRows);
  }
  const int row = n_pairs * 2 * kTileRows;
  const int left = call.n_rows - row;
  int panel = first;
  if (left > kTileRows) {
    configure(kTileRows, left - kTileRows);
    for (; panel + 2 <= last; panel += 2) two_blocks<2>(call, panel, row, left - kTileRows);
    for (; panel < last; panel++) two_blocks<1>(call, panel, row, left - kTileRows);
  } else if (left > 0) {
    configure(left, 0);
    for (; panel + 2 <= last; panel += 2) one_block<2>(call, panel, row, left);
    for (; panel < last; panel++) one_block<1>(call, panel, row, left);
  }
  _tile_release();
}

std::int64_t probe_tiles(std::int64_t rounds, float* result) {
  alignas(64) static const std::uint16_t zeros[512] = {};
  configure(kTileRows, kTileRows);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, zeros, 64);
  _tile_loadd(6, zeros, 64);
  for (std::int64_t round = 0; round < rounds; round++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 6);
  }
  alignas(64) float sums[256];
  _tile_stored(0, sums, 64);
  _tile_release();
  *result = sums[0];
  return rounds * 4 * kTileRows * kTileK * kPanel;
}

CpuKernels table_with_tiles() {
  CpuKernels table = avx512_vnni_kernels();
  table.matmul[2] = {tiles_bytes, prepare_tiles, multiply_tiles};
  table.probe_multiply[2] = probe_tiles;
  return table;
}

}  // namespace

const CpuKernels& amx_bf16_kernels() {
  static const CpuKernels table = table_with_tiles();
  return table;
}

}  // namespace kernels::cpu
