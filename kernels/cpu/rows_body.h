// Operations on single rows: norm, RoPE, activation, rounding.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

// Element i is added to sum (i / 16) % 4, lane i % 16, for any dim, so zeros appended to a row change nothing.
void rms_norm_row(const float* x, const float* w, float* y, int dim, float eps) {
  F sum[4] = {f_set(0), f_set(0), f_set(0), f_set(0)};
  int i = 0;
  for (; i + 64 <= dim; i += 64)
    for (int u = 0; u < 4; u++) {
      const F v = f_load(x + i + 16 * u);
      sum[u] = f_fma(v, v, sum[u]);
    }
  for (int u = 0; i < dim; i += 16, u++) {
    const F v = f_load_part(x + i, dim - i);
    sum[u] = f_fma(v, v, sum[u]);
  }
  const float total = f_sum(f_add(f_add(sum[0], sum[1]), f_add(sum[2], sum[3])));
  // Exact divisions and square root: if a model is enlarged by 4 in dim and eps is divided by 4,
  // each result changes only by a power of two.
  const float mean = total / static_cast<float>(dim);
  const F scale = f_set(1.0f / sqrt_one(mean + eps));
  for (i = 0; i + 16 <= dim; i += 16)
    f_store(y + i, f_mul(f_mul(f_load(x + i), scale), f_load(w + i)));
  if (i < dim) {
    const int n = dim - i;
    f_store_part(y + i, f_mul(f_mul(f_load_part(x + i, n), scale), f_load_part(w + i, n)), n);
  }
}

// scratch [head_dim]: the cosines, then the sines
void rope_row(float* x, int n_heads, int head_dim, const float* cos_sin, float* scratch) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; i++) {
    scratch[i] = cos_sin[2 * i];
    scratch[half + i] = cos_sin[2 * i + 1];
  }
  for (int h = 0; h < n_heads; h++) {
    float* low = x + static_cast<std::int64_t>(h) * head_dim;
    float* high = low + half;
    int i = 0;
    for (; i + 16 <= half; i += 16) {
      const F c = f_load(scratch + i), s = f_load(scratch + half + i);
      const F a = f_load(low + i), b = f_load(high + i);
      f_store(low + i, f_sub(f_mul(a, c), f_mul(b, s)));
      f_store(high + i, f_add(f_mul(b, c), f_mul(a, s)));
    }
    if (i < half) {
      const int n = half - i;
      const F c = f_load_part(scratch + i, n), s = f_load_part(scratch + half + i, n);
      const F a = f_load_part(low + i, n), b = f_load_part(high + i, n);
      f_store_part(low + i, f_sub(f_mul(a, c), f_mul(b, s)), n);
      f_store_part(high + i, f_add(f_mul(b, c), f_mul(a, s)), n);
    }
  }
}

// g / (1 + exp(x)). Limits x to 88, where exp is still finite; the quotient is then at most 1e-38 |g|.
inline F over_one_plus_exp(F gate, F exponent) {
  return f_div(gate, f_add(f_set(1), f_exp(f_min(f_set(88.0f), exponent))));  // f_min keeps NaN
}
// silu(g) = g / (1 + exp(-g))
inline F silu(F gate) {
  return over_one_plus_exp(gate, f_sub(f_set(0), gate));
}
// g (1 + tanh(u)) / 2 = g / (1 + exp(-2 u)) with u = sqrt(2 / pi) (g + 0.044715 g^3)
inline F gelu_tanh(F gate) {
  constexpr float kFactor = -2 * 0.797884561f;  // -2 sqrt(2 / pi)
  const F cubic = f_fma(f_mul(gate, gate), f_set(0.044715f), f_set(1));
  return over_one_plus_exp(gate, f_mul(f_mul(gate, cubic), f_set(kFactor)));
}
template <F (*kGate)(F)>
void glu_row(const float* gate, const float* up, float* y, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16) f_store(y + i, f_mul(kGate(f_load(gate + i)), f_load(up + i)));
  if (i < n) {
    const int part = n - i;
    f_store_part(y + i, f_mul(kGate(f_load_part(gate + i, part)), f_load_part(up + i, part)), part);
  }
}

void scale_and_cap_row(float* x, int n, float scale, float cap) {
  const auto changed = [&](F value) {
    value = f_mul(value, f_set(scale));
    return cap > 0 ? f_capped(value, f_set(cap)) : value;
  };
  int i = 0;
  for (; i + 16 <= n; i += 16) f_store(x + i, changed(f_load(x + i)));
  if (i < n) f_store_part(x + i, changed(f_load_part(x + i, n - i)), n - i);
}

template <class Store>
void narrow_row(const float* x, int n, void* to) {
  auto* at = static_cast<typename Store::Element*>(to);
  int i = 0;
  for (; i + 16 <= n; i += 16) Store::store(at + i, f_load(x + i));
  if (i < n) Store::store_part(at + i, f_load_part(x + i, n - i), n - i);
}

float probe_read_body(const void* data, std::int64_t bytes) {
  const char* p = static_cast<const char*>(data);
  const std::int64_t quarter = bytes / 4;
  F sum[4] = {f_set(0), f_set(0), f_set(0), f_set(0)};
  for (std::int64_t i = 0; i < quarter; i += 64)
    for (int u = 0; u < 4; u++)
      sum[u] = f_add(sum[u], f_load(reinterpret_cast<const float*>(p + u * quarter + i)));
  return f_sum(f_add(f_add(sum[0], sum[1]), f_add(sum[2], sum[3])));
}

std::int64_t probe_fma_body(std::int64_t rounds, float* result) {
  constexpr int kSums = kMaxBlockRows >= 12 ? 12 : 6;
  F sum[kSums];
  for (int i = 0; i < kSums; i++) sum[i] = f_set(static_cast<float>(i));
  const F a = f_set(0.999f), b = f_set(*result);
  for (std::int64_t round = 0; round < rounds; round++)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; i++) sum[i] = f_fma(sum[i], a, b);
  for (int i = 1; i < kSums; i++) sum[0] = f_add(sum[0], sum[i]);
  *result = f_sum(sum[0]);
  return rounds * kSums * 16;
}

}  // namespace
}  // namespace kernels::cpu
