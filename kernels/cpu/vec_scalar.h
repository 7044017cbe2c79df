// Sixteen lanes in plain C++: the reference for every vector operation. Included once, by
// ops_scalar.cpp, before the *_body.h.
#pragma once

#include <cstdint>

namespace kernels::cpu {
namespace {

/// Blocks of 16 lanes that a pass of attention keeps for each of some queries.
constexpr int attention_blocks(int) {
  return 1;
}
// rows times steps of k in a line of weights, up to which matmul does not prefetch
constexpr int kFewMultiplications = 5;
/// Attention converts a chunk to f32 once for all if it has at least this many queries.
constexpr int kWidenedQueries = 13;
constexpr int kMaxBlockRows = 4;
constexpr int panels_per_pass(int) {
  return 1;
}

struct F {
  float v[16];
};
struct I {
  std::uint32_t v[16];
};
struct M {
  bool v[16];
};
using U = F;                                // a register of a panel's outputs
constexpr int kUnits = 1, kUnitLanes = 16;  // registers of a panel, and the outputs of each

#define DECOSCOPE_LANES(expression) \
  for (int i = 0; i < 16; i++) {    \
    expression;                     \
  }

inline F f_set(float x) {
  F r;
  DECOSCOPE_LANES(r.v[i] = x)
  return r;
}
inline F f_load(const float* p) {
  F r;
  DECOSCOPE_LANES(r.v[i] = p[i])
  return r;
}
inline F f_load_part(const float* p, int n) {
  F r;
  DECOSCOPE_LANES(r.v[i] = i < n ? p[i] : 0)
  return r;
}
inline void f_store(float* p, F a) {
  DECOSCOPE_LANES(p[i] = a.v[i])
}
inline void f_store_part(float* p, F a, int n) {
  for (int i = 0; i < n && i < 16; i++) p[i] = a.v[i];
}
inline F f_add(F a, F b) {
  DECOSCOPE_LANES(a.v[i] += b.v[i])
  return a;
}
inline F f_sub(F a, F b) {
  DECOSCOPE_LANES(a.v[i] -= b.v[i])
  return a;
}
inline F f_mul(F a, F b) {
  DECOSCOPE_LANES(a.v[i] *= b.v[i])
  return a;
}
inline F f_div(F a, F b) {
  DECOSCOPE_LANES(a.v[i] /= b.v[i])
  return a;
}
inline F f_fma(F a, F b, F c) {
  DECOSCOPE_LANES(c.v[i] = a.v[i] * b.v[i] + c.v[i])
  return c;
}
inline F f_max(F a, F b) {
  DECOSCOPE_LANES(a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i])
  return a;
}
inline F f_min(F a, F b) {
  DECOSCOPE_LANES(a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i])
  return a;
}
inline float sqrt_one(float x) {
  return __builtin_sqrtf(x);
}

inline I i_set(std::uint32_t x) {
  I r;
  DECOSCOPE_LANES(r.v[i] = x)
  return r;
}
inline I i_load(const std::uint32_t* p) {
  I r;
  DECOSCOPE_LANES(r.v[i] = p[i])
  return r;
}
inline void i_store(std::uint32_t* p, I a) {
  DECOSCOPE_LANES(p[i] = a.v[i])
}
inline I i_add(I a, I b) {
  DECOSCOPE_LANES(a.v[i] += b.v[i])
  return a;
}
inline I i_sub(I a, I b) {
  DECOSCOPE_LANES(a.v[i] -= b.v[i])
  return a;
}
inline I i_and(I a, I b) {
  DECOSCOPE_LANES(a.v[i] &= b.v[i])
  return a;
}
inline I i_or(I a, I b) {
  DECOSCOPE_LANES(a.v[i] |= b.v[i])
  return a;
}
inline I i_xor(I a, I b) {
  DECOSCOPE_LANES(a.v[i] ^= b.v[i])
  return a;
}
template <int kBy>
inline I i_left(I a) {
  DECOSCOPE_LANES(a.v[i] <<= kBy)
  return a;
}
template <int kBy>
inline I i_right(I a) {
  DECOSCOPE_LANES(a.v[i] >>= kBy)
  return a;
}
/// Upper and lower halves of a * m.
inline void i_mul_wide(I a, std::uint32_t m, I& high, I& low) {
  for (int i = 0; i < 16; i++) {
    const std::uint64_t product = std::uint64_t{a.v[i]} * m;
    high.v[i] = static_cast<std::uint32_t>(product >> 32);
    low.v[i] = static_cast<std::uint32_t>(product);
  }
}
inline I i_bits(F a) {
  I r;
  __builtin_memcpy(&r, &a, sizeof r);
  return r;
}
inline F f_bits(I a) {
  F r;
  __builtin_memcpy(&r, &a, sizeof r);
  return r;
}
/// Nearest integer, ties to even, for |a| < 2^22: adding 1.5 * 2^23 leaves it in the low bits.
inline F f_round(F a) {
  for (int i = 0; i < 16; i++) {
    const float shifted = a.v[i] + 12582912.0f;
    a.v[i] = shifted - 12582912.0f;
  }
  return a;
}
/// Converts an integral value in [-2^22, 2^22]; other values give an undefined integer.
inline I i_of_whole(F a) {
  I r;
  for (int i = 0; i < 16; i++) {
    const float shifted = a.v[i] + 12582912.0f;
    std::uint32_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    r.v[i] = bits - 0x4b400000u;
  }
  return r;
}
/// Integers below 2^31, rounded to nearest even.
inline F f_of_int(I a) {
  F r;
  DECOSCOPE_LANES(r.v[i] = static_cast<float>(static_cast<std::int32_t>(a.v[i])))
  return r;
}

inline M m_less(F a, F b) {
  M r;
  DECOSCOPE_LANES(r.v[i] = a.v[i] < b.v[i])
  return r;
}
inline M m_less_equal(F a, F b) {
  M r;
  DECOSCOPE_LANES(r.v[i] = a.v[i] <= b.v[i])
  return r;
}
/// Also true for NaN.
inline M m_not_less(F a, F b) {
  M r;
  DECOSCOPE_LANES(r.v[i] = !(a.v[i] < b.v[i]))
  return r;
}
inline M m_equal(F a, F b) {
  M r;
  DECOSCOPE_LANES(r.v[i] = a.v[i] == b.v[i])
  return r;
}
inline M m_and(M a, M b) {
  DECOSCOPE_LANES(a.v[i] = a.v[i] && b.v[i])
  return a;
}
/// Bit i is lane i.
inline std::uint32_t m_bits(M a) {
  std::uint32_t r = 0;
  DECOSCOPE_LANES(r |= static_cast<std::uint32_t>(a.v[i]) << i)
  return r;
}
/// yes in lanes of m, else no.
inline F f_select(M m, F yes, F no) {
  DECOSCOPE_LANES(no.v[i] = m.v[i] ? yes.v[i] : no.v[i])
  return no;
}
/// x in lanes of m, else 0.
inline F f_where(M m, F x) {
  DECOSCOPE_LANES(x.v[i] = m.v[i] ? x.v[i] : 0)
  return x;
}
/// a 2^n for integer n <= 127; 0 if n < -126.
inline F f_times_power(F a, F n) {
  const I exponent = i_left<23>(i_add(i_of_whole(n), i_set(127)));
  const F power = f_bits(exponent);
  DECOSCOPE_LANES(a.v[i] *= n.v[i] < -126 ? 0 : n.v[i] != n.v[i] ? n.v[i] : power.v[i])
  return a;
}
/// Sum of all lanes by halves: lane i + lane i + 8, then + 4, + 2, + 1.
inline float f_sum(F a) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; i++) a.v[i] += a.v[i + half];
  return a.v[0];
}
inline float f_top(F a) {
  for (int i = 1; i < 16; i++) a.v[0] = a.v[0] > a.v[i] ? a.v[0] : a.v[i];
  return a.v[0];
}

inline float widen_half(std::uint16_t x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(x & 0x7fffu) << 13;
  std::uint32_t bits = magnitude + 0x38000000u;                  // exponent bias 15 -> 127
  if (magnitude >= 0x0f800000u) bits = magnitude | 0x7f800000u;  // infinity, NaN
  if (magnitude < 0x00800000u) {                                 // zero, subnormal
    const float value = static_cast<float>(x & 0x3ffu) * 0x1p-24f;
    __builtin_memcpy(&bits, &value, sizeof bits);
  }
  bits |= sign;
  float r;
  __builtin_memcpy(&r, &bits, sizeof r);
  return r;
}
inline F f_load_f16_part(const std::uint16_t* p, int n) {
  F r;
  DECOSCOPE_LANES(r.v[i] = i < n ? widen_half(p[i]) : 0)
  return r;
}
inline F f_load_f16(const std::uint16_t* p) {
  return f_load_f16_part(p, 16);
}
inline F f_load_i8(const std::int8_t* p) {
  F r;
  DECOSCOPE_LANES(r.v[i] = p[i])
  return r;
}
inline I i_load_u16_part(const std::uint16_t* p, int n) {
  I r;
  DECOSCOPE_LANES(r.v[i] = i < n ? p[i] : 0)
  return r;
}
inline I i_load_u16(const std::uint16_t* p) {
  return i_load_u16_part(p, 16);
}
/// The low half of each lane.
inline void i_store_u16_part(std::uint16_t* p, I a, int n) {
  for (int i = 0; i < n && i < 16; i++) p[i] = static_cast<std::uint16_t>(a.v[i]);
}
inline std::uint16_t narrow_half(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((bits >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 leaves multiples of 2^-24 in the low bits
    float value;
    __builtin_memcpy(&value, &magnitude, sizeof value);
    value += 0.5f;
    __builtin_memcpy(&magnitude, &value, sizeof magnitude);
    return static_cast<std::uint16_t>(sign | (magnitude - 0x3f000000u));
  }
  magnitude += 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}
inline void f_store_f16_part(std::uint16_t* p, F a, int n) {
  for (int i = 0; i < n && i < 16; i++) p[i] = narrow_half(a.v[i]);
}
inline void i_store_u16(std::uint16_t* p, I a) {
  i_store_u16_part(p, a, 16);
}
inline void f_store_f16(std::uint16_t* p, F a) {
  f_store_f16_part(p, a, 16);
}
inline void prefetch(const void* p) {
  __builtin_prefetch(p);
}
/// Into a cache that holds some 100 KB.
inline void prefetch_to_l2(const void* p) {
  __builtin_prefetch(p, 0, 2);
}

#undef DECOSCOPE_LANES

}  // namespace
}  // namespace kernels::cpu

#include "kernels/cpu/vec_whole_units.h"
