// Sixteen lanes as two 256-bit registers. Meaning of each operation: vec_scalar.h. Included once,
// by ops_avx2.cpp, before the *_body.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace kernels::cpu {
namespace {

/// Blocks of 16 lanes that a pass of attention keeps for each of some queries. There are 16 registers; a block takes two.
constexpr int attention_blocks(int queries) {
  return queries == 1 ? 4 : queries == 2 ? 2 : 1;
}
constexpr int kFewMultiplications = 3;
/// Attention converts a chunk to f32 once for all if it has at least this many queries. Never here: a pass of six queries hides
/// the conversion, and a chunk in f32 would not leave room in the L1 cache.
constexpr int kWidenedQueries = 1 << 30;
constexpr int kMaxBlockRows = 6;
// There are 16 registers; a panel takes two a row.
constexpr int panels_per_pass(int rows) {
  return rows <= 1 ? 4 : rows <= 3 ? 2 : 1;
}
using U = __m256;
constexpr int kUnits = 2, kUnitLanes = 8;

struct F {
  __m256 a, b;
};
struct I {
  __m256i a, b;
};
struct M {
  __m256 a, b;
};

inline F f_set(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline F f_load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline U u_set(float x) {
  return _mm256_set1_ps(x);
}
inline U u_load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline void u_store(float* p, U x) {
  _mm256_storeu_ps(p, x);
}
inline U f_fma(U x, U y, U z) {
  return _mm256_fmadd_ps(x, y, z);
}
inline F f_load_part(const float* p, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n && i < 16; i++) lanes[i] = p[i];
  return f_load(lanes);
}
inline void f_store(float* p, F x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline void f_store_part(float* p, F x, int n) {
  if (n >= 16) return f_store(p, x);
  float lanes[16];
  f_store(lanes, x);
  for (int i = 0; i < n; i++) p[i] = lanes[i];
}
inline F f_add(F x, F y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
inline F f_sub(F x, F y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
inline F f_mul(F x, F y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
inline F f_div(F x, F y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
inline F f_fma(F x, F y, F z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline F f_max(F x, F y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
inline F f_min(F x, F y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
inline float sqrt_one(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}

inline I i_set(std::uint32_t x) {
  return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))};
}
inline __m256i load8(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline void store8(void* p, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), x);
}
inline I i_load(const std::uint32_t* p) {
  return {load8(p), load8(p + 8)};
}
inline void i_store(std::uint32_t* p, I x) {
  store8(p, x.a);
  store8(p + 8, x.b);
}
inline I i_add(I x, I y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
inline I i_sub(I x, I y) {
  return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
inline I i_and(I x, I y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
inline I i_or(I x, I y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
inline I i_xor(I x, I y) {
  return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
template <int kBy>
inline I i_left(I x) {
  return {_mm256_slli_epi32(x.a, kBy), _mm256_slli_epi32(x.b, kBy)};
}
template <int kBy>
inline I i_right(I x) {
  return {_mm256_srli_epi32(x.a, kBy), _mm256_srli_epi32(x.b, kBy)};
}
inline void mul_wide8(__m256i x, __m256i factor, __m256i& high, __m256i& low) {
  const __m256i even = _mm256_mul_epu32(x, factor);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
inline void i_mul_wide(I x, std::uint32_t m, I& high, I& low) {
  const __m256i factor = _mm256_set1_epi32(static_cast<int>(m));
  mul_wide8(x.a, factor, high.a, low.a);
  mul_wide8(x.b, factor, high.b, low.b);
}
inline I i_bits(F x) {
  return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
inline F f_bits(I x) {
  return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
inline F f_round(F x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, kNearest), _mm256_round_ps(x.b, kNearest)};
}
inline I i_of_whole(F x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}
inline F f_of_int(I x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}

inline M m_less(F x, F y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)};
}
inline M m_less_equal(F x, F y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_LE_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LE_OQ)};
}
/// Also true for NaN.
inline M m_not_less(F x, F y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_NLT_UQ), _mm256_cmp_ps(x.b, y.b, _CMP_NLT_UQ)};
}
inline M m_equal(F x, F y) {
  return {_mm256_cmp_ps(x.a, y.a, _CMP_EQ_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_EQ_OQ)};
}
inline M m_and(M x, M y) {
  return {_mm256_and_ps(x.a, y.a), _mm256_and_ps(x.b, y.b)};
}
inline std::uint32_t m_bits(M x) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(x.a)) |
         static_cast<std::uint32_t>(_mm256_movemask_ps(x.b)) << 8;
}
inline F f_select(M m, F yes, F no) {
  return {_mm256_blendv_ps(no.a, yes.a, m.a), _mm256_blendv_ps(no.b, yes.b, m.b)};
}
/// x in lanes of m, else 0.
inline F f_where(M m, F x) {
  return {_mm256_and_ps(m.a, x.a), _mm256_and_ps(m.b, x.b)};
}
/// a 2^n for integer n <= 127; 0 if n < -126. If n is NaN, so is a.
inline F f_times_power(F x, F n) {
  const I exponent = i_left<23>(i_add(i_of_whole(n), i_set(127)));
  const M normal = m_less_equal(f_set(-126.0f), n);
  return f_mul(x, f_where(normal, f_bits(exponent)));
}
inline float f_sum(F x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float f_top(F x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline __m128i load_u16x8(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
inline F f_load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(load_u16x8(p)), _mm256_cvtph_ps(load_u16x8(p + 8))};
}
inline U u_load_f16(const std::uint16_t* p) {
  return _mm256_cvtph_ps(load_u16x8(p));
}
inline U u_low_bf16(const std::uint32_t* pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(load8(pairs), 16));
}
alignas(32) constexpr std::uint32_t kHighHalves[8] = {0xffff0000u, 0xffff0000u, 0xffff0000u,
                                                      0xffff0000u, 0xffff0000u, 0xffff0000u,
                                                      0xffff0000u, 0xffff0000u};
/// With several rows, all registers but four hold sums. GCC 12 would keep the pairs of u_low_bf16() and the mask in registers
/// and sums in memory; here both are operands in memory.
template <int kSums>
inline U u_high_bf16(const std::uint32_t* pairs) {
  using Eight [[gnu::may_alias]] = const std::uint32_t(*)[8];
  if constexpr (kSums <= 10) {
    return _mm256_castsi256_ps(
        _mm256_and_si256(load8(pairs), _mm256_set1_epi32(static_cast<int>(kHighHalves[0]))));
  } else {
    U high;
    asm("vmovdqa %1, %0\n\tvpand %2, %0, %0"
        : "=&x"(high)
        : "m"(kHighHalves), "m"(*reinterpret_cast<Eight>(pairs)));
    return high;
  }
}
inline I i_load_u16(const std::uint16_t* p) {
  return {_mm256_cvtepu16_epi32(load_u16x8(p)), _mm256_cvtepu16_epi32(load_u16x8(p + 8))};
}
inline void copy_u16(std::uint16_t* to, const std::uint16_t* from, int n) {
  for (int i = 0; i < n && i < 16; i++) to[i] = from[i];
}
inline F f_load_i8(const std::int8_t* p) {
  return {_mm256_cvtepi32_ps(
              _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))),
          _mm256_cvtepi32_ps(
              _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 8))))};
}
inline F f_load_f16_part(const std::uint16_t* p, int n) {
  std::uint16_t lanes[16] = {};
  copy_u16(lanes, p, n);
  return f_load_f16(lanes);
}
inline I i_load_u16_part(const std::uint16_t* p, int n) {
  std::uint16_t lanes[16] = {};
  copy_u16(lanes, p, n);
  return i_load_u16(lanes);
}
inline void i_store_u16_part(std::uint16_t* p, I x, int n) {
  std::uint32_t lanes[16];
  i_store(lanes, x);
  for (int i = 0; i < n && i < 16; i++) p[i] = static_cast<std::uint16_t>(lanes[i]);
}
inline void f_store_f16_part(std::uint16_t* p, F x, int n) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  std::uint16_t lanes[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes), _mm256_cvtps_ph(x.a, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes + 8), _mm256_cvtps_ph(x.b, kNearest));
  copy_u16(p, lanes, n);
}
/// Lanes hold at most 16 bits each.
inline void i_store_u16(std::uint16_t* p, I x) {
  const __m256i mixed = _mm256_packus_epi32(x.a, x.b);  // quarters a0 b0 a1 b1
  store8(p, _mm256_permute4x64_epi64(mixed, 0xd8));
}
inline void f_store_f16(std::uint16_t* p, F x) {
  f_store_f16_part(p, x, 16);
}
inline void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
inline void prefetch_to_l2(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

}  // namespace
}  // namespace kernels::cpu
