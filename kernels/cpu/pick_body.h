// Passes over one row of logits: the two largest, sums of exponentials, Gumbel noise.
#pragma once

#include "kernels/cpu/kernel_table.h"

namespace kernels::cpu {
namespace {

inline F load_or(const float* x, int n, float rest) {
  alignas(64) static const float kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  if (n >= 16) return f_load(x);
  const M in_range = m_less(f_load(kLane), f_set(static_cast<float>(n)));
  return f_select(in_range, f_load_part(x, n > 0 ? n : 0), f_set(rest));
}

inline void keep_two(F x, F& top, F& second) {
  second = f_max(second, f_min(top, x));
  top = f_max(top, x);
}

// Finds the two largest values among 16 lanes, each of which has its own two largest values.
inline void merge_two(F tops, F seconds, float* top, float* second) {
  float t[16], s[16];
  f_store(t, tops);
  f_store(s, seconds);
  float best = -kInfinity, next = -kInfinity;
  for (int i = 0; i < 16; i++) {
    const float low = t[i] < best ? t[i] : best;
    best = t[i] > best ? t[i] : best;
    next = low > next ? low : next;
    next = s[i] > next ? s[i] : next;
  }
  *top = best;
  *second = next;
}

// A maximum does not depend on the order of comparisons, so four pairs run in parallel.
int top_two_of(const float* x, int n, float* top, float* second) {
  F tops[4], seconds[4];
  for (int u = 0; u < 4; u++) tops[u] = seconds[u] = f_set(-kInfinity);
  int i = 0;
  for (; i + 64 <= n; i += 64) {
    std::uint32_t fine = 0xffffu;
    for (int u = 0; u < 4; u++) {
      const F v = f_load(x + i + 16 * u);
      fine &= m_bits(m_less(v, f_set(kInfinity)));  // false for NaN too
      keep_two(v, tops[u], seconds[u]);
    }
    if (fine != 0xffffu) break;
  }
  for (; i < n; i += 16) {
    const F v = load_or(x + i, n - i, -kInfinity);
    const std::uint32_t fine = m_bits(m_less(v, f_set(kInfinity)));
    if (fine != 0xffffu) return i + __builtin_ctz(~fine);
    keep_two(v, tops[0], seconds[0]);
  }
  for (int u = 1; u < 4; u++) {
    seconds[0] = f_max(f_max(seconds[0], seconds[u]), f_min(tops[0], tops[u]));
    tops[0] = f_max(tops[0], tops[u]);
  }
  merge_two(tops[0], seconds[0], top, second);
  return -1;
}

int find_first_of(const float* x, int n, float value) {
  for (int i = 0; i < n; i += 16) {
    const F v = n - i >= 16 ? f_load(x + i) : f_load_part(x + i, n - i);
    std::uint32_t equal = m_bits(m_equal(v, f_set(value)));
    if (n - i < 16) equal &= (1u << (n - i)) - 1;
    if (equal) return i + __builtin_ctz(equal);
  }
  return -1;
}

float sum_exp_of(const float* x, int n, float top, float inv_temperature) {
  F sum[2] = {f_set(0), f_set(0)};
  const F minus = f_set(top), factor = f_set(inv_temperature);
  int i = 0;
  for (; i + 32 <= n; i += 32)
    for (int u = 0; u < 2; u++) {
      const F v = f_sub(f_load(x + i + 16 * u), minus);
      sum[u] = f_add(sum[u], f_exp(f_mul(v, factor)));
    }
  for (int u = 0; i < n; i += 16, u++) {
    const F v = f_sub(load_or(x + i, n - i, -kInfinity), minus);
    sum[u] = f_add(sum[u], f_exp(f_mul(v, factor)));
  }
  return f_sum(f_add(sum[0], sum[1]));
}

int find_above_of(const float* x, int n, float threshold, int* to, int room) {
  int found = 0;
  for (int i = 0; i < n; i += 16) {
    std::uint32_t above = m_bits(m_less_equal(f_set(threshold), load_or(x + i, n - i, -kInfinity)));
    if (n - i < 16) above &= (1u << (n - i)) - 1;
    for (; above; above &= above - 1, found++)
      if (found < room) to[found] = i + __builtin_ctz(above);
  }
  return found;
}

// Philox4x32-10 (kernels/philox.h) on 16 counters at once: bits of tokens 64 b .. 64 b + 63.
inline void random_block(std::uint64_t seed,
                         std::uint32_t stream,
                         std::uint32_t position,
                         std::uint32_t block,
                         std::uint32_t* bits) {
  // Lane 4 q + s computes the words of counter 4 s + q.
  alignas(64) static const std::uint32_t kOrder[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                       2, 6, 10, 14, 3, 7, 11, 15};
  I c0 = i_set(position), c1 = i_set(stream);
  I c2 = i_add(i_load(kOrder), i_set(block * 16)), c3 = i_set(0);
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; round++) {
    I high0, low0, high1, low1;
    i_mul_wide(c0, 0xD2511F53u, high0, low0);
    i_mul_wide(c2, 0xCD9E8D57u, high1, low1);
    c0 = i_xor(i_xor(high1, c1), i_set(k0));
    c1 = low1;
    c2 = i_xor(i_xor(high0, c3), i_set(k1));
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  alignas(64) std::uint32_t word[4][16];
  i_store(word[0], c0);
  i_store(word[1], c1);
  i_store(word[2], c2);
  i_store(word[3], c3);
  for (int lane = 0; lane < 16; lane++)
    for (int w = 0; w < 4; w++) bits[4 * static_cast<int>(kOrder[lane]) + w] = word[w][lane];
}

// -log(-log((x + 0.5) 2^-32)) within 1e-5, precise at both ends of the range.
inline F gumbel(I bits) {
  // As a float, x has a relative error of 2^-24, which suffices below one half. Above it the
  // distance d from one must be precise: -log(1 - d) = d + d^2 (1/2 + ...), by Kahan's trick.
  const F half = f_set(0.5f);
  const I low_half = i_right<1>(bits);  // below 2^31, so signed conversion serves
  const F u = f_mul(f_add(f_of_int(low_half), f_set(0.25f)), f_set(0x1p-31f));
  const I mirrored = i_right<1>(i_xor(bits, i_set(0xffffffffu)));
  const F coarse = f_mul(f_add(f_of_int(mirrored), f_set(0.25f)), f_set(0x1p-31f));
  // The shifts drop the lowest bit, which matters if the value is small. Adds it back.
  const F u_bit = f_mul(f_of_int(i_and(bits, i_set(1))), f_set(0x1p-32f));
  const F d_bit = f_mul(f_of_int(i_and(i_xor(bits, i_set(1)), i_set(1))), f_set(0x1p-32f));
  const F from_zero = f_add(u, u_bit), from_one = f_add(coarse, d_bit);
  const F w = f_sub(f_set(1.0f), from_one);
  const F gap = f_sub(f_set(1.0f), w);
  const M tiny = m_less_equal(gap, f_set(0.0f));
  const F safe_gap = f_select(tiny, f_set(1.0f), gap);
  const F near_one =
      f_select(tiny, from_one, f_mul(f_sub(f_set(0.0f), f_log(w)), f_div(from_one, safe_gap)));
  const F t = f_select(m_less(from_zero, half), f_sub(f_set(0.0f), f_log(from_zero)), near_one);
  return f_sub(f_set(0.0f), f_log(t));
}

// Noise lies in [-3.2, 22.9], so a block whose largest value plus 22.9 is below the second best score so far is skipped.
void noisy_scores_of(const float* x,
                     int n,
                     float top,
                     float inv_temperature,
                     std::uint64_t seed,
                     std::uint32_t stream,
                     std::uint32_t position,
                     float* scores,
                     float* best,
                     float* second) {
  F tops = f_set(-kInfinity), seconds = f_set(-kInfinity);
  *best = *second = -kInfinity;
  const F minus_top = f_set(-top), factor = f_set(inv_temperature);
  for (int i = 0; i < n; i += kNoiseBlock) {
    F value[4];
    F block_top = f_set(-kInfinity);
    for (int b = 0; b < 4; b++) {
      const F v = load_or(x + i + 16 * b, n - i - 16 * b, -kInfinity);
      value[b] = f_mul(f_add(v, minus_top), factor);
      block_top = f_max(block_top, value[b]);
    }
    if (f_top(block_top) + 22.95f < *second) {
      for (int b = 0; b < 4; b++) f_store(scores + i + 16 * b, f_set(-kInfinity));
      continue;
    }
    alignas(64) std::uint32_t bits[kNoiseBlock];
    random_block(seed, stream, position, static_cast<std::uint32_t>(i / kNoiseBlock), bits);
    for (int b = 0; b < 4; b++) {
      const F score = f_add(value[b], gumbel(i_load(bits + 16 * b)));
      f_store(scores + i + 16 * b, score);
      keep_two(score, tops, seconds);
    }
    if (i / kNoiseBlock % 8 == 0) merge_two(tops, seconds, best, second);
  }
  merge_two(tops, seconds, best, second);
}

}  // namespace
}  // namespace kernels::cpu
