// The operations on a unit of a panel for instruction sets in which a unit is a whole vector of 16 lanes. Included at the end of
// vec_scalar.h and of vec_avx512.h, whose types and functions it uses.
#pragma once

#include <cstdint>

namespace kernels::cpu {
namespace {

inline U u_set(float x) {
  return f_set(x);
}
inline U u_load(const float* p) {
  return f_load(p);
}
inline void u_store(float* p, U a) {
  f_store(p, a);
}
inline U u_load_f16(const std::uint16_t* p) {
  return f_load_f16(p);
}
/// The lower bf16 of each pair, as f32.
inline U u_low_bf16(const std::uint32_t* pairs) {
  return f_bits(i_left<16>(i_load(pairs)));
}
/// The upper bf16 of each pair, as f32.
template <int kSums>
inline U u_high_bf16(const std::uint32_t* pairs) {
  return f_bits(i_and(i_load(pairs), i_set(0xffff0000u)));
}

}  // namespace
}  // namespace kernels::cpu
