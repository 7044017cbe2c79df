// This file is compiled with AVX-512 and AMX flags, so its code may run only if amx_usable(). It
// uses only raw pointers, intrinsics and functions of this file alone, because an inline function that
// other files share would get these flags too.
#include "engine/train/ops/amx_gemm.h"

#include <immintrin.h>

#include "kernels/cpu/amx/tile_config.h"

namespace engine {
namespace {

constexpr int kTile = 512;  // bf16 elements of one tile

// Offsets of the 16 x 32 tiles of a left operand, in elements.
struct LeftTiles {
  std::int64_t m_step;  // from one block of 32 rows to the next
  int k_step;           // from one block of 32 k to the next
  int half;             // from the upper 16 rows to the lower
  int row_bytes;
};

void round_block(const float* block, Bf16* c, int n) {
  for (int row = 0; row < 32; row++) {
    const __m512 low = _mm512_load_ps(block + row * 32);
    const __m512 high = _mm512_load_ps(block + row * 32 + 16);
    const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
    _mm512_storeu_si512(c + std::int64_t{row} * n, (__m512i)both);
  }
}

template <AmxOut kOut>
void block_of_32(const Bf16* a, const LeftTiles& left, const Bf16* b, void* c_any, int k, int n) {
  float* c = static_cast<float*>(c_any);
  const std::int64_t row_bytes = std::int64_t{n} * 4;
  if constexpr (kOut == AmxOut::AddF32) {
    _tile_loadd(0, c, row_bytes);
    _tile_loadd(1, c + 16, row_bytes);
    _tile_loadd(2, c + 16 * std::int64_t{n}, row_bytes);
    _tile_loadd(3, c + 16 * std::int64_t{n} + 16, row_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int kb = 0; kb < k / 32; kb++, a += left.k_step, b += 2 * kTile) {
    _tile_loadd(4, a, left.row_bytes);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTile, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + left.half, left.row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  if constexpr (kOut == AmxOut::StoreBf16) {
    alignas(64) float block[32 * 32];
    _tile_stored(0, block, 128);
    _tile_stored(1, block + 16, 128);
    _tile_stored(2, block + 16 * 32, 128);
    _tile_stored(3, block + 16 * 32 + 16, 128);
    round_block(block, static_cast<Bf16*>(c_any), n);
  } else {
    _tile_stored(0, c, row_bytes);
    _tile_stored(1, c + 16, row_bytes);
    _tile_stored(2, c + 16 * std::int64_t{n}, row_bytes);
    _tile_stored(3, c + 16 * std::int64_t{n} + 16, row_bytes);
  }
}

// Multiplies `kRowsAtOnce` rows of a by the same columns of b, which stay in the L1 cache.
template <AmxOut kOut>
void gemm(const Bf16* a, const LeftTiles& left, const Bf16* b, char* c, int m, int k, int n) {
  constexpr int kRowsAtOnce = 256;
  constexpr int kBytes = kOut == AmxOut::StoreBf16 ? 2 : 4;
  kernels::cpu::load_config(kernels::cpu::TileConfig(16));
  for (int m0 = 0; m0 < m; m0 += kRowsAtOnce) {
    const int m1 = m0 + kRowsAtOnce < m ? m0 + kRowsAtOnce : m;
    for (int j = 0; j < n; j += 32) {
      const Bf16* columns = b + std::int64_t{j} * k;
      for (int i = m0; i < m1; i += 32) {
        block_of_32<kOut>(a + i / 32 * left.m_step, left, columns,
                          c + (std::int64_t{i} * n + j) * kBytes, k, n);
      }
    }
  }
  _tile_release();
}

void gemm(const Bf16* a,
          const LeftTiles& left,
          const Bf16* b,
          void* c_any,
          int m,
          int k,
          int n,
          AmxOut out) {
  char* c = static_cast<char*>(c_any);
  switch (out) {
    case AmxOut::StoreF32:
      return gemm<AmxOut::StoreF32>(a, left, b, c, m, k, n);
    case AmxOut::AddF32:
      return gemm<AmxOut::AddF32>(a, left, b, c, m, k, n);
    case AmxOut::StoreBf16:
      return gemm<AmxOut::StoreBf16>(a, left, b, c, m, k, n);
  }
}

// Transposes a 16 x 16 matrix of 32-bit elements, with one row per register.
void transpose(__m512i* r) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

__m512i load_32(const Bf16* x) {
  return _mm512_loadu_si512(x);
}
__m512i load_32(const float* x) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
}

// Interleaves an even and an odd row of 32 columns into two registers of 16 pairs.
void interleave(__m512i even, __m512i odd, __m512i* low, __m512i* high) {
  const __m512i a = _mm512_unpacklo_epi16(even, odd);  // pairs 0-3, 8-11, 16-19, 24-27
  const __m512i b = _mm512_unpackhi_epi16(even, odd);  // pairs 4-7, 12-15, 20-23, 28-31
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  *low = _mm512_permutex2var_epi64(a, first, b);
  *high = _mm512_permutex2var_epi64(a, second, b);
}

template <typename T>
void pack_plain(const T* x, int k, int n, Bf16* packed) {
  for (int kb = 0; kb < k; kb += 32) {
    for (int j = 0; j < n; j += 32) {
      Bf16* to = packed + std::int64_t{j} * k + std::int64_t{kb} * 32;
      for (int pair = 0; pair < 16; pair++) {
        const T* row = x + std::int64_t{kb + 2 * pair} * n + j;
        __m512i low, high;
        interleave(load_32(row), load_32(row + n), &low, &high);
        _mm512_storeu_si512(to + pair * 32, low);
        _mm512_storeu_si512(to + kTile + pair * 32, high);
      }
    }
  }
}

}  // namespace

void amx_pack_transposed(const float* w, int n, int k, Bf16* packed) {
  for (int j = 0; j < n; j += 32) {
    for (int kb = 0; kb < k; kb += 32) {
      Bf16* to = packed + std::int64_t{j} * k + std::int64_t{kb} * 32;
      for (int half = 0; half < 2; half++) {
        __m512i rows[16];
        for (int r = 0; r < 16; r++) {
          rows[r] = load_32(w + std::int64_t{j + half * 16 + r} * k + kb);
        }
        transpose(rows);
        for (int r = 0; r < 16; r++) _mm512_storeu_si512(to + half * kTile + r * 32, rows[r]);
      }
    }
  }
}

void amx_pack_plain(const float* w, int k, int n, Bf16* packed) {
  pack_plain(w, k, n, packed);
}

void amx_pack_plain(const Bf16* x, int k, int n, Bf16* packed) {
  pack_plain(x, k, n, packed);
}

void amx_pack_left_transposed(const Bf16* x, int k, int m, Bf16* packed) {
  for (int kb = 0; kb < k; kb += 32) {
    for (int i = 0; i < m; i += 32) {
      Bf16* to = packed + std::int64_t{i} * k + std::int64_t{kb} * 32;
      __m512i upper[16], lower[16];
      for (int pair = 0; pair < 16; pair++) {
        const Bf16* row = x + std::int64_t{kb + 2 * pair} * m + i;
        interleave(load_32(row), load_32(row + m), &upper[pair], &lower[pair]);
      }
      transpose(upper);
      transpose(lower);
      for (int r = 0; r < 16; r++) {
        _mm512_storeu_si512(to + r * 32, upper[r]);
        _mm512_storeu_si512(to + kTile + r * 32, lower[r]);
      }
    }
  }
}

void amx_gemm(const Bf16* a, const Bf16* b_packed, void* c, int m, int k, int n, AmxOut out) {
  const LeftTiles rows{std::int64_t{32} * k, 32, 16 * k, 2 * k};
  gemm(a, rows, b_packed, c, m, k, n, out);
}

void amx_gemm_packed(
    const Bf16* a_packed, const Bf16* b_packed, float* c, int m, int k, int n, AmxOut out) {
  const LeftTiles tiles{std::int64_t{32} * k, 2 * kTile, kTile, 64};
  gemm(a_packed, tiles, b_packed, c, m, k, n, out);
}

}  // namespace engine
