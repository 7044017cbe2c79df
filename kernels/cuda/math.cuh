// Arithmetic on the device: storage types, exp, noise, and reductions in a fixed order. A product and a sum are two
// roundings unless the source says fmaf (nvcc runs with -fmad=false), so everything but the tensor cores' own sums has the
// same bits on a GPU and in the emulation.
#pragma once

#include <string.h>

#include <cstdint>

#include "kernels/cuda/intrinsics.cuh"

#if !defined(DECOSCOPE_CUDA_EMULATION)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "kernels/dtype.h"

namespace kernels::DECOSCOPE_GPU {
namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

// ---- storage types: conversion of an element to f32 and from f32

struct StoreF32 {
  using Element = float;
  static constexpr DType kType = DType::F32;
  __device__ static float widen(float x) { return x; }
  __device__ static float narrow(float x) { return x; }
};
struct StoreBf16 {
  using Element = std::uint16_t;
  static constexpr DType kType = DType::BF16;
  static constexpr Half kHalf = Half::Bf16;
  __device__ static float widen(std::uint16_t x) {
    return __uint_as_float(static_cast<unsigned>(x) << 16);
  }
  __device__ static std::uint16_t narrow(float x) {  // as kernels::bf16_from_f32
    const unsigned bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
  }
};
struct StoreF16 {
  using Element = std::uint16_t;
  static constexpr DType kType = DType::F16;
  static constexpr Half kHalf = Half::F16;
#if defined(DECOSCOPE_CUDA_EMULATION)
  static float widen(std::uint16_t x) {
    return f32_of_f16(x);
  }
  static std::uint16_t narrow(float x) {
    return f16_from_f32(x);
  }
#else
  __device__ static float widen(std::uint16_t x) {
    return __half2float(__ushort_as_half(x));
  }
  __device__ static std::uint16_t narrow(float x) {
    return __half_as_ushort(__float2half_rn(x));
  }
#endif
};

constexpr float kInfinity = __builtin_huge_valf();

/// exp(x) for x <= 88; below -100, and for -inf, exactly 0; NaN stays NaN. The series of
/// kernels/cpu/math_body.h.
__device__ inline float exp_f32(float x) {
  if (!(x >= -100.0f)) return x < -100.0f ? 0.0f : x;
  const float n = rintf(x * 1.44269504f);
  float r = fmaf(n, -0.693145752f, x);  // ln 2 in two parts; n times the first is exact
  r = fmaf(n, -1.42860677e-6f, r);
  float sum = 1.0f / 5040;
  sum = fmaf(sum, r, 1.0f / 720);
  sum = fmaf(sum, r, 1.0f / 120);
  sum = fmaf(sum, r, 1.0f / 24);
  sum = fmaf(sum, r, 1.0f / 6);
  sum = fmaf(sum, r, 0.5f);
  sum = fmaf(sum, r, 1.0f);
  sum = fmaf(sum, r, 1.0f);
  const int exponent = static_cast<int>(n);
  if (exponent < -126) return 0;
  return sum * __uint_as_float(static_cast<unsigned>(exponent + 127) << 23);
}

/// tanh(x), as f_tanh of kernels/cpu/math_body.h.
__device__ inline float tanh_f32(float x) {
  const float size = x < 0 ? -x : x;
  if (size < 0.2f) {
    const float t = x * x;
    float sum = 62.0f / 2835;
    sum = fmaf(sum, t, -17.0f / 315);
    sum = fmaf(sum, t, 2.0f / 15);
    sum = fmaf(sum, t, -1.0f / 3);
    sum = fmaf(sum, t, 1.0f);
    return x * sum;
  }
  const float e = exp_f32(size * -2.0f);
  const float y = (1.0f - e) / (1.0f + e);
  return x < 0 ? -y : y;
}
/// The softcap: cap * tanh(x / cap).
__device__ inline float capped(float x, float cap) {
  return cap * tanh_f32(x / cap);
}

// ---- noise, with the same bits as kernels/philox.h

/// Four random words.
struct Words {
  unsigned w[4];
};
/// The 32 random bits of tokens 4 block .. 4 block + 3.
__device__ inline Words philox_block(std::uint64_t seed,
                                     unsigned stream,
                                     unsigned position,
                                     unsigned block) {
  Words c = {{position, stream, block, 0}};
  auto k0 = static_cast<unsigned>(seed);
  auto k1 = static_cast<unsigned>(seed >> 32);
  for (int round = 0; round < 10; round++) {
    const unsigned high0 = __umulhi(0xD2511F53u, c.w[0]), low0 = 0xD2511F53u * c.w[0];
    const unsigned high1 = __umulhi(0xCD9E8D57u, c.w[2]), low1 = 0xCD9E8D57u * c.w[2];
    c = {{high1 ^ c.w[1] ^ k0, low1, high0 ^ c.w[3] ^ k1, low0}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
__device__ inline double gumbel(unsigned bits) {
  return -log(-log((bits + 0.5) * 2.3283064365386963e-10));  // 2^-32
}

// ---- reductions over a warp or a block, always by the same tree

/// The value of the lane whose number is this lane's xor `by`.
template <class T>
__device__ T across(T x, int by) {
#if defined(DECOSCOPE_CUDA_EMULATION)
  return __shfl_xor_sync(kAllLanes, x, by);  // any type, with one synchronisation
#else
  constexpr int kWords = sizeof(T) / 4;
  static_assert(sizeof(T) % 4 == 0);
  unsigned words[kWords];
  memcpy(words, &x, sizeof x);
#pragma unroll
  for (int i = 0; i < kWords; i++) words[i] = __shfl_xor_sync(kAllLanes, words[i], by);
  memcpy(&x, words, sizeof x);
  return x;
#endif
}
template <class T, class Combine>
__device__ T over_warp(T x, const Combine& combine) {
  for (int by = 16; by > 0; by /= 2) x = combine(x, across(x, by));
  return x;
}
struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

template <class T, int kWarps>
struct WarpResults {
  T of[kWarps];
};
/// Reduces over all kThreads of the block, in the order of warps. Every thread gets the result. Synchronises the
/// block twice.
template <int kThreads, class T, class Combine>
__device__ T over_block(T x, const Combine& combine) {
  constexpr int kWarps = kThreads / 32;
  auto& results = static_shared<WarpResults<T, kWarps>>();
  x = over_warp(x, combine);
  __syncthreads();  // all threads have read the results of an earlier call
  if (threadIdx.x % 32 == 0) results.of[threadIdx.x / 32] = x;
  __syncthreads();
  T all = results.of[0];
  for (int warp = 1; warp < kWarps; warp++) all = combine(all, results.of[warp]);
  return all;
}
/// Reduces over a block of whole warps: a tree over each warp's lanes, then a tree over 32 warps, with `none` for missing
/// warps. So a block may omit threads that would add zeros. Every thread gets the result. Synchronises the block twice.
template <class T, class Combine>
__device__ T over_warps(T x, T none, const Combine& combine) {
  auto& results = static_shared<WarpResults<T, 32>>();
  const int lane = threadIdx.x % 32, n_warps = blockDim.x / 32;
  x = over_warp(x, combine);
  __syncthreads();  // all threads have read the results of an earlier call
  if (lane == 0) results.of[threadIdx.x / 32] = x;
  __syncthreads();
  return over_warp(lane < n_warps ? results.of[lane] : none, combine);
}

// ---- four neighbouring elements of a row, handled by one thread

struct Four {
  float of[4];
};
/// True if rows that start at these addresses, `stride` elements of 4 bytes apart, allow vectors of four.
template <class... T>
__device__ bool lie_in_fours(std::int64_t stride, const T*... at) {
  return ((static_cast<std::uintptr_t>(stride * 4) | ... | reinterpret_cast<std::uintptr_t>(at)) %
          16) == 0;
}
/// Loads the first n elements; the others are 0.
__device__ inline Four load_four(const float* from, int n, bool in_fours) {
  if (in_fours && n >= 4) {
    const float4 all = *reinterpret_cast<const float4*>(from);
    return {{all.x, all.y, all.z, all.w}};
  }
  Four four = {};
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (j < n) four.of[j] = from[j];
  return four;
}
__device__ inline void store_four(float* to, const Four& four, int n, bool in_fours) {
  if (in_fours && n >= 4) {
    *reinterpret_cast<float4*>(to) = float4{four.of[0], four.of[1], four.of[2], four.of[3]};
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (j < n) to[j] = four.of[j];
}
/// Two adjacent halves.
template <class Store>
__device__ unsigned narrow_two(float first, float second) {
  return Store::narrow(first) | static_cast<unsigned>(Store::narrow(second)) << 16;
}
/// Rounds four elements to the storage type and stores the first n.
template <class Store>
__device__ void store_four_as(typename Store::Element* to, const Four& four, int n, bool in_fours) {
  if constexpr (sizeof(*to) == 4) {
    store_four(to, four, n, in_fours);
  } else if (in_fours && n >= 4) {
    *reinterpret_cast<uint2*>(to) =
        uint2{narrow_two<Store>(four.of[0], four.of[1]), narrow_two<Store>(four.of[2], four.of[3])};
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (j < n) to[j] = Store::narrow(four.of[j]);
  }
}

struct LastOne {
  bool is_last;
};
/// True in the last of n blocks that call it with this counter: the writes of all of them are visible. The counter is 0
/// before and after. Synchronises the block.
__device__ inline bool last_to_come(unsigned* done, unsigned n) {
  LastOne& shared = static_shared<LastOne>();
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = atomicAdd(done, 1u) + 1 == n;
    if (shared.is_last) *done = 0;
  }
  __syncthreads();
  __threadfence();
  return shared.is_last;
}

}  // namespace
}  // namespace kernels::DECOSCOPE_GPU
