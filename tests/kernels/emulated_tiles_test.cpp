// AMX tiles in plain C++, by the definitions of the instructions in Intel's manual. They make quantised/tiles.h one more
// instruction set of all tests of this program.
#include "kernels/cpu/vec_scalar.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/quantised/tiles.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.h"

namespace kernels::cpu {
namespace {

/// Rows and bytes outside the shape are 0. Without rows it is not configured.
struct Tile {
  int n_rows = 0, n_bytes = 0;
  std::uint8_t row[16][64] = {};
};
thread_local Tile tiles[8];

void fault_unless(bool condition, const char* fault) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", fault);
  std::abort();
}

Tile& configured(int tile) {
  fault_unless(tiles[tile].n_rows > 0, "#UD: the tile is not configured");
  return tiles[tile];
}

struct EmulatedTiles {
  static const CpuKernels& few_rows() { return scalar_kernels(); }
  static F fma(F a, F b, F c) { return fused(a, b, c); }

  /// LDTILECFG
  static void configure(const TileConfig& config) {
    const auto is_0 = [](int x) { return x == 0; };
    fault_unless(config.palette == 1 && config.start_row == 0 &&
                     std::all_of(config.reserved, config.reserved + 14, is_0),
                 "#GP: the head of a tile configuration");
    for (int i = 0; i < 16; i++) {
      const int rows = config.rows[i], bytes = config.bytes_per_row[i];
      fault_unless(is_0(rows) == is_0(bytes) && rows <= (i < 8 ? 16 : 0) && bytes <= 64,
                   "#GP: the shape of a tile");
      if (i < 8) tiles[i] = Tile{rows, bytes};
    }
  }
  /// TILERELEASE
  static void release() { std::fill_n(tiles, 8, Tile()); }
  /// TILEZERO
  template <int kTile>
  static void zero() {
    std::memset(configured(kTile).row, 0, sizeof(Tile::row));
  }
  /// TILELOADD
  template <int kTile>
  static void load(const void* from, std::int64_t stride_bytes) {
    zero<kTile>();
    Tile& tile = tiles[kTile];
    for (int r = 0; r < tile.n_rows; r++)
      std::memcpy(tile.row[r], static_cast<const char*>(from) + r * stride_bytes,
                  static_cast<std::size_t>(tile.n_bytes));
  }
  /// TILESTORED
  template <int kTile>
  static void store(void* to, std::int64_t stride_bytes) {
    const Tile& tile = configured(kTile);
    for (int r = 0; r < tile.n_rows; r++)
      std::memcpy(static_cast<char*>(to) + r * stride_bytes, tile.row[r],
                  static_cast<std::size_t>(tile.n_bytes));
  }
  /// TDPBSUD: sums c[m][n] += a[m][k] b[k][n], in which each dword of a row is 4 k; signed bytes times unsigned bytes.
  template <int kProduct>
  static void dot() {
    Tile& c = configured(kProduct);
    const Tile& a = configured(activations_of(kProduct));
    const Tile& b = configured(weights_of(kProduct));
    fault_unless(c.n_rows == a.n_rows && c.n_bytes == b.n_bytes && a.n_bytes == 4 * b.n_rows &&
                     c.n_bytes % 4 == 0,
                 "#UD: the shapes of a tile product");
    for (int m = 0; m < c.n_rows; m++)
      for (int n = 0; n < c.n_bytes; n += 4) {
        std::uint32_t sum;
        std::memcpy(&sum, c.row[m] + n, 4);
        for (int k = 0; k < a.n_bytes; k++)
          sum += static_cast<std::uint32_t>(static_cast<std::int8_t>(a.row[m][k]) *
                                            b.row[k / 4][n + k % 4]);
        std::memcpy(c.row[m] + n, &sum, 4);
      }
  }
};

template <class Q>
using EmulatedKernel = TilesKernel<Q, EmulatedTiles>;

// Before main(), so that every test sees it.
[[maybe_unused]] const bool is_added = [] {
  add_changed_set("amx_emulated", add_quantised<EmulatedKernel>);
  return true;
}();

TEST(EmulatedTiles, are_an_instruction_set_of_the_tests) {
  const auto all = all_cpu_ops();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [](const Ops* ops) { return ops->name == std::string("amx_emulated"); }));
}

TEST(EmulatedTiles, multiply_signed_by_unsigned_bytes_in_their_shape) {
  TileConfig config(1);
  for (const int tile : {0, 4, 6}) {
    config.rows[tile] = tile == 6 ? 1 : 3;
    config.bytes_per_row[tile] = tile == 4 ? 4 : 8;
  }
  const std::int8_t a[3][4] = {{-1, -128, 127, 0}, {0, 0, 0, 1}, {1, 2, 3, 4}};
  const std::uint8_t b[8] = {255, 255, 255, 9, 0, 1, 0, 128};  // two outputs
  EmulatedTiles::configure(config);
  EmulatedTiles::load<4>(a, 4);
  EmulatedTiles::load<6>(b, 64);
  EmulatedTiles::dot<0>();
  EmulatedTiles::dot<0>();
  std::int32_t sums[4][3] = {};
  EmulatedTiles::store<0>(sums, sizeof sums[0]);
  EmulatedTiles::release();
  const std::int32_t expected[4][3] = {
      {2 * -510, 2 * -128, 0}, {2 * 9, 2 * 128, 0}, {2 * 1566, 2 * 514, 0}, {}};
  EXPECT_EQ(0, std::memcmp(sums, expected, sizeof sums));
}

}  // namespace
}  // namespace kernels::cpu
