// The shapes of AMX's tile registers.
#pragma once

#include <cstdint>

namespace kernels::cpu {
namespace {

/// The operand of ldtilecfg. Palette 1 has 8 tiles of at most 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  /// All tiles have n_rows rows of 64 bytes.
  explicit TileConfig(int n_rows) {
    for (int i = 0; i < 8; i++) {
      bytes_per_row[i] = 64;
      rows[i] = static_cast<std::uint8_t>(n_rows);
    }
  }
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {};
  std::uint8_t rows[16] = {};
};

#if defined(__AMX_TILE__)
/// Sets the shapes, and all tiles to 0.
inline void load_config(const TileConfig& config) {
  // To the compiler GCC 12's intrinsic reads only the first 8 bytes. This makes it store all of them first.
  asm volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}
#endif

}  // namespace
}  // namespace kernels::cpu
