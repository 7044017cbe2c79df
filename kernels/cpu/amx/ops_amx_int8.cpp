// AMX tiles for quantised weights; everything else is amx_bf16. It is a table of its own, although processors with AMX have both,
// so that CPU_OPS=amx_bf16 runs the same products with VNNI.
#include "kernels/cpu/vec_avx512.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/quantised/tiles.h"

namespace kernels::cpu {
namespace {

// GCC's intrinsics make the number of a tile a part of the instruction's text, so the code writes each number.
struct AmxTiles {
  static const CpuKernels& few_rows() { return avx512_vnni_kernels(); }
  static F fma(F a, F b, F c) { return f_fma(a, b, c); }

  static void configure(const TileConfig& config) { load_config(config); }
  static void release() { _tile_release(); }
  template <int kTile>
  static void zero() {
    if constexpr (kTile == 0) _tile_zero(0);
    if constexpr (kTile == 1) _tile_zero(1);
    if constexpr (kTile == 2) _tile_zero(2);
    if constexpr (kTile == 3) _tile_zero(3);
  }
  template <int kTile>
  static void load(const void* from, std::int64_t stride_bytes) {
    // To the compiler GCC 12's intrinsic reads no memory. This makes it store the unpacked weights first.
    asm volatile("" ::: "memory");
    if constexpr (kTile == 4) _tile_loadd(4, from, stride_bytes);
    if constexpr (kTile == 5) _tile_loadd(5, from, stride_bytes);
    if constexpr (kTile == 6) _tile_loadd(6, from, stride_bytes);
    if constexpr (kTile == 7) _tile_loadd(7, from, stride_bytes);
  }
  template <int kProduct>
  static void dot() {
    if constexpr (kProduct == 0) _tile_dpbsud(0, 4, 6);
    if constexpr (kProduct == 1) _tile_dpbsud(1, 5, 7);
    if constexpr (kProduct == 2) _tile_dpbsud(2, 4, 6);
    if constexpr (kProduct == 3) _tile_dpbsud(3, 5, 7);
  }
  template <int kTile>
  static void store(void* to, std::int64_t stride_bytes) {
    if constexpr (kTile == 0) _tile_stored(0, to, stride_bytes);
    if constexpr (kTile == 1) _tile_stored(1, to, stride_bytes);
    if constexpr (kTile == 2) _tile_stored(2, to, stride_bytes);
    if constexpr (kTile == 3) _tile_stored(3, to, stride_bytes);
  }
};

template <class Q>
using AmxKernel = TilesKernel<Q, AmxTiles>;

}  // namespace

const CpuKernels& amx_int8_kernels() {
  static const CpuKernels table = [] {
    CpuKernels made = amx_bf16_kernels();
    add_quantised<AmxKernel>(made);
    return made;
  }();
  return table;
}

}  // namespace kernels::cpu
