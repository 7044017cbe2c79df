// Quantised products with vpmaddubsw, for processors without VNNI. A register holds 8 outputs.
//   4 bits   pairs of products add up in 16 bits: 16 of them are at most 15 * 127 * 16 = 30480
//   8 bits   two products need more than 16 bits, so vpmaddwd multiplies 16-bit words instead: the even and the odd
//            weights of each four
#pragma once

#include <immintrin.h>

#include "kernels/cpu/quantised/blocks.h"

namespace kernels::cpu {
namespace {

struct Maddubs {
  static constexpr int kRows = 5, kRowsOfReading = 5, kParts = 2;
  using Dot = __m256i;
  using Floats = __m256;
  template <class Q>
  using Input = cpu::Input<Q, !Q::kIs.nibbles>;

  // Keeps the order of the additions: the compiler would do them last and spill all products.
  static void settle(Dot& dot) { asm("" : "+x"(dot)); }

  template <class Q, int kR>
  static void add_line(
      Dot (&dot)[kR][kParts], const char* block, const Input<Q>* x, int line, bool first) {
    const auto* from = reinterpret_cast<const __m256i*>(block + 64 * line);
    if constexpr (Q::kIs.nibbles)
      add_nibbles<Q>(dot, from, x, line, first);
    else
      add_bytes<Q>(dot, from, x, line, first);
  }

  template <class Q, int kR>
  static void add_nibbles(
      Dot (&dot)[kR][kParts], const __m256i* from, const Input<Q>* x, int line, bool first) {
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i low[kParts], high[kParts];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part++) {
      const __m256i q = _mm256_load_si256(from + part);
      low[part] = _mm256_and_si256(q, mask);
      high[part] = _mm256_and_si256(_mm256_srli_epi16(q, 4), mask);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kR; r++) {
      const __m256i x_low = _mm256_set1_epi32(word_at(x[r].q + 4 * line));
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++) {
        const __m256i pairs = _mm256_maddubs_epi16(low[part], x_low);
        dot[r][part] = first ? pairs : _mm256_add_epi16(dot[r][part], pairs);
        settle(dot[r][part]);
      }
      const __m256i x_high = _mm256_set1_epi32(word_at(x[r].q + 16 + 4 * line));
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++) {
        dot[r][part] = _mm256_add_epi16(dot[r][part], _mm256_maddubs_epi16(high[part], x_high));
        settle(dot[r][part]);
      }
    }
  }

  template <class Q, int kR>
  static void add_bytes(
      Dot (&dot)[kR][kParts], const __m256i* from, const Input<Q>* x, int line, bool first) {
    const __m256i mask = _mm256_set1_epi16(255);
    __m256i even[kParts], odd[kParts];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part++) {
      const __m256i q = _mm256_load_si256(from + part);
      even[part] = _mm256_and_si256(q, mask);
      odd[part] = _mm256_srli_epi16(q, 8);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kR; r++) {
      const __m256i x_even = _mm256_set1_epi32(word_at(x[r].q + 4 * line));
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++) {
        const __m256i pair = _mm256_madd_epi16(even[part], x_even);
        dot[r][part] = first ? pair : _mm256_add_epi32(dot[r][part], pair);
        settle(dot[r][part]);
      }
      const __m256i x_odd = _mm256_set1_epi32(word_at(x[r].q + 4 * line + 2));
#pragma GCC unroll 2
      for (int part = 0; part < kParts; part++) {
        dot[r][part] = _mm256_add_epi32(dot[r][part], _mm256_madd_epi16(odd[part], x_odd));
        settle(dot[r][part]);
      }
    }
  }

  template <class Q>
  static Floats dot_of(Dot dot, const Input<Q>& x, int group) {
    if constexpr (Q::kIs.nibbles) dot = _mm256_madd_epi16(dot, _mm256_set1_epi16(1));
    if constexpr (Q::kCorrects) dot = _mm256_add_epi32(dot, _mm256_set1_epi32(x.words[group]));
    return _mm256_cvtepi32_ps(dot);
  }

  template <class Q>
  static Floats values(const char* p, int part) {
    if constexpr (Q::kIs.halves)
      return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p) + part));
    else
      return _mm256_load_ps(reinterpret_cast<const float*>(p) + 8 * part);
  }
  static Floats broadcast(const void* p) {
    return _mm256_castsi256_ps(_mm256_set1_epi32(word_at(p)));
  }
  static Floats load(const float* p) {
    return _mm256_load_ps(p);
  }
  static void store(float* p, Floats x) {
    _mm256_store_ps(p, x);
  }
  static Floats mul(Floats x, Floats y) {
    return _mm256_mul_ps(x, y);
  }
  static Floats fma(Floats x, Floats y, Floats z) {
    return _mm256_fmadd_ps(x, y, z);
  }
};

template <class Q>
using MaddubsKernel = BlocksKernel<Q, Maddubs>;

}  // namespace
}  // namespace kernels::cpu
