// Quantised products with AVX-512 VNNI: vpdpbusd adds four products of unsigned weights and signed activations to each of
// 16 lanes of 32 bits.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/quantised/blocks.h"

namespace kernels::cpu {
namespace {

struct Vnni512 {
  static constexpr int kRows = 12, kRowsOfReading = 8, kParts = 1;
  using Dot = __m512i;
  using Floats = __m512;
  template <class Q>
  using Input = cpu::Input<Q, false>;

  template <class Q, int kR>
  static void add_line(
      Dot (&dot)[kR][kParts], const char* block, const Input<Q>* x, int line, bool first) {
    const __m512i q = _mm512_loadu_si512(block + 64 * line);
    if (first) {
      constexpr int kPerGroup = Q::kLineBytes / 64 / Q::kGroups;
#pragma GCC unroll 16
      for (int r = 0; r < kR; r++)
        dot[r][0] =
            Q::kCorrects ? _mm512_set1_epi32(x[r].words[line / kPerGroup]) : _mm512_setzero_si512();
    }
    if constexpr (!Q::kIs.nibbles) return add(dot, q, &x->q[4 * line], sizeof *x);
    const __m512i mask = _mm512_set1_epi8(15);
    add(dot, _mm512_and_si512(q, mask), &x->q[4 * line], sizeof *x);
    add(dot, _mm512_and_si512(_mm512_srli_epi16(q, 4), mask), &x->q[16 + 4 * line], sizeof *x);
  }

  template <int kR>
  static void add(Dot (&dot)[kR][kParts], __m512i w, const std::int8_t* x, std::size_t stride) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; r++)
      dot[r][0] = _mm512_dpbusd_epi32(dot[r][0], w, _mm512_set1_epi32(word_at(x + r * stride)));
  }

  template <class Q>
  static Floats dot_of(Dot dot, const Input<Q>&, int) {
    return _mm512_cvtepi32_ps(dot);
  }
  template <class Q>
  static Floats values(const char* p, int) {
    return load_values<Q>(p);
  }
  static Floats broadcast(const void* p) {
    return _mm512_castsi512_ps(_mm512_set1_epi32(word_at(p)));
  }
  static Floats load(const float* p) {
    return _mm512_load_ps(p);
  }
  static void store(float* p, Floats x) {
    _mm512_store_ps(p, x);
  }
  static Floats mul(Floats x, Floats y) {
    return _mm512_mul_ps(x, y);
  }
  static Floats fma(Floats x, Floats y, Floats z) {
    return _mm512_fmadd_ps(x, y, z);
  }
};

template <class Q>
using VnniKernel = BlocksKernel<Q, Vnni512>;

}  // namespace
}  // namespace kernels::cpu
