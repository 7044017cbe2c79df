// exp, log and storage types, with the vector operations of the vec_*.h that was included before.
#pragma once

#include <cstdint>

namespace kernels::cpu {
namespace {

constexpr float kInfinity = __builtin_inff();

/// exp(x) for x <= 88; exactly 0 for x far below -87 and for -inf. The Taylor series over |r| <=
/// ln(2) / 2 leaves r^8 / 8! = 5e-9 relative. NaN stays NaN.
inline F f_exp(F x) {
  x = f_max(f_set(-200.0f), x);  // f_max returns its second argument if one is NaN
  const F n = f_round(f_mul(x, f_set(1.44269504f)));
  F r = f_fma(n, f_set(-0.693145752f), x);  // ln 2 in two parts; n times the first is exact
  r = f_fma(n, f_set(-1.42860677e-6f), r);
  F sum = f_set(1.0f / 5040);
  sum = f_fma(sum, r, f_set(1.0f / 720));
  sum = f_fma(sum, r, f_set(1.0f / 120));
  sum = f_fma(sum, r, f_set(1.0f / 24));
  sum = f_fma(sum, r, f_set(1.0f / 6));
  sum = f_fma(sum, r, f_set(0.5f));
  sum = f_fma(sum, r, f_set(1.0f));
  sum = f_fma(sum, r, f_set(1.0f));
  return f_times_power(sum, n);
}

/// exp(x) for x <= 0, as f_exp(), but with a shorter chain of dependent operations: the same series in pairs (Estrin's scheme), and
/// the integer n is the low bits of a sum. Exactly 0 for x < -87 and for -inf. NaN stays NaN.
inline F f_exp_below_0(F x) {
  const F clamped = f_max(f_set(-87.0f), x);
  const F biased = f_fma(clamped, f_set(1.44269504f), f_set(12582912.0f + 127.0f));
  const F n = f_sub(biased, f_set(12582912.0f + 127.0f));
  F r = f_fma(n, f_set(-0.693145752f), clamped);
  r = f_fma(n, f_set(-1.42860677e-6f), r);
  const F r2 = f_mul(r, r);
  const F low = f_fma(r, f_set(1.0f), f_set(1.0f));
  const F mid = f_fma(r, f_set(1.0f / 6), f_set(0.5f));
  const F high = f_fma(r, f_set(1.0f / 120), f_set(1.0f / 24));
  const F top = f_fma(r, f_set(1.0f / 5040), f_set(1.0f / 720));
  const F sum = f_fma(f_fma(f_fma(top, r2, high), r2, mid), r2, low);
  return f_where(m_not_less(x, f_set(-87.0f)), f_mul(sum, f_bits(i_left<23>(i_bits(biased)))));
}

/// tanh(x). For |x| < 0.2 the Taylor series up to x^9, whose next term is below 1e-9 |x|; else
/// +-(1 - e) / (1 + e) with e = exp(-2 |x|). NaN stays NaN.
inline F f_tanh(F x) {
  const F size = f_max(x, f_sub(f_set(0), x));
  const F e = f_exp(f_mul(size, f_set(-2.0f)));
  const F far = f_div(f_sub(f_set(1), e), f_add(f_set(1), e));
  const F t = f_mul(x, x);
  F sum = f_set(62.0f / 2835);
  sum = f_fma(sum, t, f_set(-17.0f / 315));
  sum = f_fma(sum, t, f_set(2.0f / 15));
  sum = f_fma(sum, t, f_set(-1.0f / 3));
  sum = f_fma(sum, t, f_set(1));
  const F large = f_select(m_less(x, f_set(0)), f_sub(f_set(0), far), far);
  return f_select(m_less(size, f_set(0.2f)), f_mul(x, sum), large);
}
/// The softcap: cap * tanh(x / cap).
inline F f_capped(F x, F cap) {
  return f_mul(cap, f_tanh(f_div(x, cap)));
}

/// log(x) for normal x > 0, as 2 atanh(s) with |s| <= 0.172; the first omitted term is 2e-9 of the sum.
inline F f_log(F x) {
  const I bits = i_bits(x);
  // Chooses the exponent of x / sqrt(1/2), so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const I shifted = i_sub(bits, i_set(0x3f3504f3u));
  const I exponent = i_sub(i_right<23>(i_add(shifted, i_set(0x3f800000u))), i_set(127));
  const F m = f_bits(i_sub(bits, i_left<23>(exponent)));
  const F s = f_div(f_sub(m, f_set(1.0f)), f_add(m, f_set(1.0f)));
  const F t = f_mul(s, s);
  F sum = f_set(2.0f / 9);
  sum = f_fma(sum, t, f_set(2.0f / 7));
  sum = f_fma(sum, t, f_set(2.0f / 5));
  sum = f_fma(sum, t, f_set(2.0f / 3));
  sum = f_fma(sum, t, f_set(2.0f));
  return f_fma(f_of_int(exponent), f_set(0.693147181f), f_mul(sum, s));
}

inline F f_of_bf16(I x) {
  return f_bits(i_left<16>(x));
}
/// Rounds to bf16 in the low half of each lane, as kernels::bf16_from_f32.
inline I bf16_bits(F x) {
  const I bits = i_bits(x);
  const I rounded =
      i_right<16>(i_add(bits, i_add(i_set(0x7fffu), i_and(i_right<16>(bits), i_set(1)))));
  const I quiet = i_or(i_right<16>(bits), i_set(0x40));
  return i_bits(f_select(m_equal(x, x), f_bits(rounded), f_bits(quiet)));
}
inline F rounded_to_bf16(F x) {
  return f_of_bf16(bf16_bits(x));
}

/// One half as f32.
inline float f32_of_half(const std::uint16_t* p) {
  float lanes[16];
  f_store(lanes, f_load_f16_part(p, 1));
  return lanes[0];
}

// Storage types: load 16 values, or the first n, as f32, and store them.
struct StoreF32 {
  using Element = float;
  static F load(const Element* p) { return f_load(p); }
  static F load_part(const Element* p, int n) { return f_load_part(p, n); }
  static void store(Element* p, F x) { f_store(p, x); }
  static void store_part(Element* p, F x, int n) { f_store_part(p, x, n); }
};
struct StoreF16 {
  using Element = std::uint16_t;
  static F load(const Element* p) { return f_load_f16(p); }
  static F load_part(const Element* p, int n) { return f_load_f16_part(p, n); }
  static void store(Element* p, F x) { f_store_f16(p, x); }
  static void store_part(Element* p, F x, int n) { f_store_f16_part(p, x, n); }
};
struct StoreBF16 {
  using Element = std::uint16_t;
  static F load(const Element* p) { return f_of_bf16(i_load_u16(p)); }
  static F load_part(const Element* p, int n) { return f_of_bf16(i_load_u16_part(p, n)); }
  static void store(Element* p, F x) { i_store_u16(p, bf16_bits(x)); }
  static void store_part(Element* p, F x, int n) { i_store_u16_part(p, bf16_bits(x), n); }
};

}  // namespace
}  // namespace kernels::cpu
