// Quantised products with VNNI: vpdpbusd adds four products of unsigned weights and signed activations to each lane of 32 bits.
//   Vector   the registers: kRows, kRowsOfReading and kParts (blocks.h), operations on floats, and on integers load, low_nibbles,
//            high_nibbles, set (32 bits in every lane) and add_products
#pragma once

#include <immintrin.h>

#include "kernels/cpu/quantised/blocks.h"
#if defined(__AVXVNNI__)
#include "kernels/cpu/quantised/maddubs.h"
#endif

namespace kernels::cpu {
namespace {

#if defined(__AVX512VNNI__)
// AVX-512 VNNI: a register holds 16 outputs.
struct Vector512 {
  static constexpr int kRows = 12, kRowsOfReading = 8, kParts = 1;
  using Dot = __m512i;
  using Floats = __m512;

  static Dot load(const char* p) { return _mm512_loadu_si512(p); }
  static Dot low_nibbles(Dot q) { return _mm512_and_si512(q, _mm512_set1_epi8(15)); }
  static Dot high_nibbles(Dot q) { return low_nibbles(_mm512_srli_epi16(q, 4)); }
  static Dot set(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Dot add_products(Dot dot, Dot weights, Dot x) {
    return _mm512_dpbusd_epi32(dot, weights, x);
  }

  static Floats of_int(Dot dot) { return _mm512_cvtepi32_ps(dot); }
  template <class Q>
  static Floats values(const char* p, int) {
    return load_values<Q>(p);
  }
  static Floats broadcast(const void* p) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(word_at(p)));
  }
  static Floats load(const float* p) { return _mm512_load_ps(p); }
  static void store(float* p, Floats x) { _mm512_store_ps(p, x); }
  static Floats mul(Floats x, Floats y) { return _mm512_mul_ps(x, y); }
  static Floats fma(Floats x, Floats y, Floats z) { return _mm512_fmadd_ps(x, y, z); }
};
#endif

#if defined(__AVXVNNI__)
// AVX-VNNI: a register holds 8 outputs. Floats are as in Maddubs.
struct Vector256 : Maddubs {
  using Maddubs::load;

  static Dot load(const char* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
  static Dot low_nibbles(Dot q) { return _mm256_and_si256(q, _mm256_set1_epi8(15)); }
  static Dot high_nibbles(Dot q) { return low_nibbles(_mm256_srli_epi16(q, 4)); }
  static Dot set(std::int32_t x) { return _mm256_set1_epi32(x); }
  static Dot add_products(Dot dot, Dot weights, Dot x) {
    return _mm256_dpbusd_avx_epi32(dot, weights, x);
  }
  static Floats of_int(Dot dot) { return _mm256_cvtepi32_ps(dot); }
};
#endif

template <class Vector>
struct Vnni : Vector {
  static constexpr int kParts = Vector::kParts;
  using Dot = typename Vector::Dot;
  using Floats = typename Vector::Floats;
  template <class Q>
  using Input = cpu::Input<Q, false>;

  template <class Q, int kR>
  static void add_line(
      Dot (&dot)[kR][kParts], const char* block, const Input<Q>* x, int line, bool first) {
    if (first) {
      constexpr int kPerGroup = Q::kLineBytes / 64 / Q::kGroups;
#pragma GCC unroll 16
      for (int r = 0; r < kR; r++)
#pragma GCC unroll 2
        for (int part = 0; part < kParts; part++)
          dot[r][part] = Vector::set(Q::kCorrects ? x[r].words[line / kPerGroup] : 0);
    }
    Dot q[kParts];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part++)
      q[part] = Vector::load(block + 64 * line + 64 / kParts * part);
    if constexpr (!Q::kIs.nibbles) return add(dot, q, &x->q[4 * line], sizeof *x);
    Dot nibbles[kParts];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part++) nibbles[part] = Vector::low_nibbles(q[part]);
    add(dot, nibbles, &x->q[4 * line], sizeof *x);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part++) nibbles[part] = Vector::high_nibbles(q[part]);
    add(dot, nibbles, &x->q[16 + 4 * line], sizeof *x);
  }

  template <int kR>
  static void add(Dot (&dot)[kR][kParts],
                  const Dot (&w)[kParts],
                  const std::int8_t* x,
                  std::size_t stride) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; r++) {
      const Dot word = Vector::set(word_at(x + r * stride));
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++)
        dot[r][part] = Vector::add_products(dot[r][part], w[part], word);
    }
  }

  template <class Q>
  static Floats dot_of(Dot dot, const Input<Q>&, int) {
    return Vector::of_int(dot);
  }
};

#if defined(__AVX512VNNI__)
template <class Q>
using VnniKernel = BlocksKernel<Q, Vnni<Vector512>>;
#else
template <class Q>
using VnniKernel = BlocksKernel<Q, Vnni<Vector256>>;
#endif

}  // namespace
}  // namespace kernels::cpu
