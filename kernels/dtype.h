// Element types of weights and caches, and scalar conversions. Tests compare every other conversion with these.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kernels {

/// Element types.
enum class DType : std::uint8_t { F32, F16, BF16 };

/// Bytes of one element.
int bytes_of(DType dtype);
/// "f32", "f16", "bf16".
const char* name_of(DType dtype);
/// The type with this name; nullopt for any other text.
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

}  // namespace kernels
