#include "kernels/dtype.h"

#include <cmath>

#include "kernels/error.h"

namespace kernels {

int bytes_of(DType dtype) {
  ensure(!is_quantised(dtype), "bytes_of: a quantised type has no single elements");
  return dtype == DType::F32 ? 4 : 2;
}

std::int64_t cache_bytes(DType dtype, std::int64_t n) {
  if (dtype != DType::Q8_0) return n * bytes_of(dtype);
  ensure(n % kCacheGroup == 0, "a cache of type q8_0: head_dim must be a multiple of 32");
  return n + n / kCacheGroup * 2;
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "f32";
    case DType::F16:
      return "f16";
    case DType::BF16:
      return "bf16";
    case DType::Q4_0:
      return "q4_0";
    case DType::Q4_1:
      return "q4_1";
    case DType::Q4_K:
      return "q4_k";
    case DType::Q8_0:
      return "q8_0";
    case DType::Q8_G:
      return "q8_g";
  }
  throw_contract_error("DType out of range");
}

std::optional<DType> dtype_named(std::string_view name) {
  if (name == "f32") return DType::F32;
  if (name == "f16") return DType::F16;
  if (name == "bf16") return DType::BF16;
  return std::nullopt;
}

std::uint16_t f16_from_f32(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or beyond: infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: a subnormal half, spacing 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<std::uint16_t>(std::nearbyint(scaled));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return sign | static_cast<std::uint16_t>((rounded - 0x38000000u) >> 13);
}

float f32_from_f16(std::uint16_t x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x8000u) << 16;
  const std::uint32_t exponent = (x >> 10) & 0x1f;
  const std::uint32_t mantissa = x & 0x3ffu;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace kernels
