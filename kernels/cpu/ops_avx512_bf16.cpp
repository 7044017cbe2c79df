// AVX-512 with vdpbf16ps: multiplies bf16 weights two k at a time; everything else is AVX-512 with VNNI.
#include "kernels/cpu/vec_avx512.h"
//
#include "kernels/cpu/math_body.h"
//
#include "kernels/cpu/matmul_body.h"

namespace kernels::cpu {
namespace {

struct MulPairs {
  using X = std::int32_t;  // x[2p], x[2p + 1] in bf16
  static constexpr int kSteps = 1, kSpan = 2;
  template <int kStep, int kSums>
  static I weights(const char* line, int) {
    return _mm512_loadu_si512(line);
  }
  static I broadcast(X x) { return _mm512_set1_epi32(x); }
  static U step(U sum, I w, I x) { return _mm512_dpbf16_ps(sum, (__m512bh)w, (__m512bh)x); }
};

void prepare_pairs(const float* x,
                   std::int64_t x_stride,
                   int n_rows,
                   int k,
                   int part,
                   int n_parts,
                   void* prepared) {
  prepare_blocks(x, x_stride, n_rows, n_lines_of<MulPairs>(k), part, n_parts,
                 static_cast<std::int32_t*>(prepared),
                 [k](const float* from, int i, std::int32_t(&lanes)[16]) {
                   const F low = load_below(from, 2 * i, k);
                   const F high = load_below(from, 2 * i + 16, k);
                   _mm512_store_si512(lanes, (__m512i)_mm512_cvtne2ps_pbh(high, low));
                 });
}

std::int64_t probe_pairs(std::int64_t rounds, float* result) {
  constexpr int kSums = 12;
  F sum[kSums];
  for (int i = 0; i < kSums; i++) sum[i] = f_set(static_cast<float>(i));
  const I a = i_set(0x3f803f80u), b = i_set(0x2f802f80u);
  for (std::int64_t round = 0; round < rounds; round++)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; i++) sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)a, (__m512bh)b);
  for (int i = 1; i < kSums; i++) sum[0] = f_add(sum[0], sum[i]);
  *result = f_sum(sum[0]);
  return rounds * kSums * 32;
}

CpuKernels table_with_pairs() {
  CpuKernels table = avx512_vnni_kernels();
  table.matmul[2] = {prepared_bytes<MulPairs>, prepare_pairs, multiply_panels<MulPairs>};
  table.probe_multiply[2] = probe_pairs;
  return table;
}

}  // namespace

const CpuKernels& avx512_bf16_kernels() {
  static const CpuKernels table = table_with_pairs();
  return table;
}

}  // namespace kernels::cpu
