// Element types of weights and caches, and scalar conversions. Tests compare every other conversion with these.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kernels {

/// Element types, then formats of quantised weights. A quantised weight is scale * q, or scale * q + minimum, with one
/// scale and minimum for a group of consecutive inputs of an output (`QuantisedRows` in kernels/ops.h).
enum class DType : std::uint8_t {
  F32,
  F16,
  BF16,
  Q4_0,  // q of 4 bits, groups of 32, scales in f16
  Q4_1,  // q of 4 bits, groups of 32, scales and minima in f16
  Q4_K,  // q of 4 bits, groups of 32, scales and minima in f32
  Q8_0,  // q of 8 bits, groups of 32, scales in f16
  Q8_G,  // q of 8 bits, groups of 16, scales and minima in f32
};

/// True for the formats of packed weights that have no single elements.
constexpr bool is_quantised(DType dtype) {
  return dtype >= DType::Q4_0;
}
/// Bytes of one element.
/// @throws ContractError  for a quantised type
int bytes_of(DType dtype);
/// "f32", "f16", "bf16", "q4_0", "q4_1", "q4_k", "q8_0", "q8_g".
const char* name_of(DType dtype);
/// The element type with this name; nullopt for any other text.
std::optional<DType> dtype_named(std::string_view name);

/// Rounds to the nearest bf16, ties to even; NaN stays NaN (quiet).
inline std::uint16_t bf16_from_f32(float x) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  bits += 0x7fffu + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

/// Exact.
inline float f32_from_bf16(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

/// Rounds to the nearest IEEE half, ties to even; larger values become infinity.
std::uint16_t f16_from_f32(float x);
/// Exact.
float f32_from_f16(std::uint16_t x);

/// Values of a head that share a scale in a cache of type Q8_0
inline constexpr int kCacheGroup = 32;
/// Bytes of n values in a KV cache. Q8_0 (CPU only): int8 and a scale in f16 for each kCacheGroup values; n is a multiple of kCacheGroup.
/// @throws ContractError  for other quantised types
std::int64_t cache_bytes(DType dtype, std::int64_t n);

}  // namespace kernels
