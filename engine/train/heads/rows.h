// Rows of numbers between bf16, f32 and what a pass computes in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/train/ops/bf16.h"
#include "kernels/dtype.h"

namespace engine {

inline void copy_row(const Bf16* from, int n, Bf16* to) {
  std::copy_n(from, n, to);
}
inline void copy_row(const Bf16* from, int n, float* to) {
  for (int i = 0; i < n; i++) to[i] = kernels::f32_from_bf16(from[i].bits);
}
inline void copy_row(const float* from, int n, float* to) {
  std::copy_n(from, n, to);
}
inline void copy_row(const float* from, int n, Bf16* to) {
  for (int i = 0; i < n; i++) to[i] = {kernels::bf16_from_f32(from[i])};
}
inline void add_row(const Bf16* from, int n, Bf16* to) {
  for (int i = 0; i < n; i++)
    to[i] = {kernels::bf16_from_f32(kernels::f32_from_bf16(to[i].bits) +
                                    kernels::f32_from_bf16(from[i].bits))};
}
inline void add_row(const float* from, int n, float* to) {
  for (int i = 0; i < n; i++) to[i] += from[i];
}
inline void add_row(const Bf16* from, int n, float* to) {
  for (int i = 0; i < n; i++) to[i] += kernels::f32_from_bf16(from[i].bits);
}

}  // namespace engine
