// Sixteen lanes as one 512-bit register. Meaning of each operation: vec_scalar.h. Included once by
// each AVX-512 file, before the *_body.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace kernels::cpu {
namespace {

constexpr int attention_blocks(int) {
  return 4;
}
constexpr int kFewMultiplications = 5;
/// Shuffles that widen 16-bit values compete with the multiplications for a port of Intel's processors.
constexpr int kWidenedQueries = 13;
constexpr int kMaxBlockRows = 24;
// 32 registers: panels x rows of sums, a weight line per panel, one broadcast.
constexpr int panels_per_pass(int rows) {
  return rows <= 5 ? 4 : rows <= 13 ? 2 : 1;
}

using F = __m512;
using I = __m512i;
using M = __mmask16;
using U = F;
constexpr int kUnits = 1, kUnitLanes = 16;

inline M lanes_below(int n) {
  return static_cast<M>(n >= 16 ? 0xffffu : (1u << n) - 1);
}
inline F f_set(float x) {
  return _mm512_set1_ps(x);
}
inline F f_load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline F f_load_part(const float* p, int n) {
  return _mm512_maskz_loadu_ps(lanes_below(n), p);
}
inline void f_store(float* p, F a) {
  _mm512_storeu_ps(p, a);
}
inline void f_store_part(float* p, F a, int n) {
  _mm512_mask_storeu_ps(p, lanes_below(n), a);
}
inline F f_add(F a, F b) {
  return _mm512_add_ps(a, b);
}
inline F f_sub(F a, F b) {
  return _mm512_sub_ps(a, b);
}
inline F f_mul(F a, F b) {
  return _mm512_mul_ps(a, b);
}
inline F f_div(F a, F b) {
  return _mm512_div_ps(a, b);
}
inline F f_fma(F a, F b, F c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline F f_max(F a, F b) {
  return _mm512_max_ps(a, b);
}
inline F f_min(F a, F b) {
  return _mm512_min_ps(a, b);
}
inline float sqrt_one(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

inline I i_set(std::uint32_t x) {
  return _mm512_set1_epi32(static_cast<int>(x));
}
inline I i_load(const std::uint32_t* p) {
  return _mm512_loadu_si512(p);
}
inline void i_store(std::uint32_t* p, I a) {
  _mm512_storeu_si512(p, a);
}
inline I i_add(I a, I b) {
  return _mm512_add_epi32(a, b);
}
inline I i_sub(I a, I b) {
  return _mm512_sub_epi32(a, b);
}
inline I i_and(I a, I b) {
  return _mm512_and_si512(a, b);
}
inline I i_or(I a, I b) {
  return _mm512_or_si512(a, b);
}
inline I i_xor(I a, I b) {
  return _mm512_xor_si512(a, b);
}
template <int kBy>
inline I i_left(I a) {
  return _mm512_slli_epi32(a, kBy);
}
template <int kBy>
inline I i_right(I a) {
  return _mm512_srli_epi32(a, kBy);
}
inline void i_mul_wide(I a, std::uint32_t m, I& high, I& low) {
  const I factor = i_set(m);
  const I even = _mm512_mul_epu32(a, factor);
  const I odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
  high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
  low = _mm512_mask_mov_epi32(even, 0xaaaa, _mm512_slli_epi64(odd, 32));
}
inline I i_bits(F a) {
  return _mm512_castps_si512(a);
}
inline F f_bits(I a) {
  return _mm512_castsi512_ps(a);
}
inline F f_round(F a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline I i_of_whole(F a) {
  return _mm512_cvtps_epi32(a);
}
inline F f_of_int(I a) {
  return _mm512_cvtepi32_ps(a);
}

/// a 2^n for integer n <= 127; 0 if n < -126. The mask avoids underflow, which costs the processor a hundred cycles.
inline F f_times_power(F a, F n) {
  const M normal = _mm512_cmp_ps_mask(n, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(normal, a, n);
}

inline M m_less(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
inline M m_less_equal(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
inline M m_not_less(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}
inline M m_equal(F a, F b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
inline M m_and(M a, M b) {
  return static_cast<M>(a & b);
}
inline std::uint32_t m_bits(M a) {
  return a;
}
inline F f_select(M m, F yes, F no) {
  return _mm512_mask_mov_ps(no, m, yes);
}
inline F f_where(M m, F x) {
  return _mm512_maskz_mov_ps(m, x);
}
inline float f_sum(F a) {
  const __m256 low = _mm512_castps512_ps256(a);
  const __m256 high = _mm512_extractf32x8_ps(a, 1);
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float f_top(F a) {
  return _mm512_reduce_max_ps(a);
}

inline F f_load_f16(const std::uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F f_load_i8(const std::int8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline F f_load_f16_part(const std::uint16_t* p, int n) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes_below(n), p));
}
inline I i_load_u16(const std::uint16_t* p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline I i_load_u16_part(const std::uint16_t* p, int n) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes_below(n), p));
}
inline void i_store_u16_part(std::uint16_t* p, I a, int n) {
  _mm256_mask_storeu_epi16(p, lanes_below(n), _mm512_cvtepi32_epi16(a));
}
inline void f_store_f16_part(std::uint16_t* p, F a, int n) {
  const __m256i half = _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_mask_storeu_epi16(p, lanes_below(n), half);
}
inline void i_store_u16(std::uint16_t* p, I a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
}
inline void f_store_f16(std::uint16_t* p, F a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a, kNearest));
}
inline void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
inline void prefetch_to_l2(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

}  // namespace
}  // namespace kernels::cpu

#include "kernels/cpu/vec_whole_units.h"
