#include "engine/checkpoint/gguf/ggml_blocks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>

#include "engine/base/types.h"
#include "kernels/dtype.h"

namespace engine {
namespace {

using Bytes = const std::uint8_t*;

std::uint16_t u16_at(Bytes p) {
  return static_cast<std::uint16_t>(p[0] | p[1] << 8);
}

float half_at(Bytes p) {
  return kernels::f32_from_f16(u16_at(p));
}

// IQ4_NL and IQ4_XS store an index of this table for each element.
constexpr std::array<float, 16> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};

// Each function below decodes one block. If a block of 32 elements has 16 bytes of nibbles, the low
// nibbles are elements 0 to 15 and the high nibbles 16 to 31.

void q4_0(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; i++) {
    out[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
    out[i + 16] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
  }
}

void q4_1(Bytes block, float* out) {
  const float d = half_at(block), low = half_at(block + 2);
  for (int i = 0; i < 16; i++) {
    out[i] = static_cast<float>(block[4 + i] & 15) * d + low;
    out[i + 16] = static_cast<float>(block[4 + i] >> 4) * d + low;
  }
}

// Adds the fifth bit of element i to its nibble: bit i of the 32 bits at `high`.
int five_bits(int nibble, Bytes high, int i) {
  return nibble | (high[i / 8] >> (i % 8) & 1) << 4;
}

void q5_0(Bytes block, float* out) {
  const float d = half_at(block);
  const Bytes high = block + 2, nibbles = block + 6;
  for (int i = 0; i < 16; i++) {
    out[i] = static_cast<float>(five_bits(nibbles[i] & 15, high, i) - 16) * d;
    out[i + 16] = static_cast<float>(five_bits(nibbles[i] >> 4, high, i + 16) - 16) * d;
  }
}

void q5_1(Bytes block, float* out) {
  const float d = half_at(block), low = half_at(block + 2);
  const Bytes high = block + 4, nibbles = block + 8;
  for (int i = 0; i < 16; i++) {
    out[i] = static_cast<float>(five_bits(nibbles[i] & 15, high, i)) * d + low;
    out[i + 16] = static_cast<float>(five_bits(nibbles[i] >> 4, high, i + 16)) * d + low;
  }
}

void q8_0(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; i++)
    out[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i])) * d;
}

void iq4_nl(Bytes block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 16; i++) {
    out[i] = d * kLevels[block[2 + i] & 15];
    out[i + 16] = d * kLevels[block[2 + i] >> 4];
  }
}

// A block of 256: 16 groups of 16 elements of 2 bits, each with a scale and a minimum of 4 bits.
// Bytes 32 half .. 32 half + 31 hold the 128 elements of a half: bits 2j, 2j + 1 of byte i are
// element 32 j + i.
void q2_k(Bytes block, float* out) {
  const Bytes scales = block, bits = block + 16;
  const float d = half_at(block + 80), low = half_at(block + 82);
  for (int group = 0; group < 16; group++) {
    const int half = group / 8, j = group % 8 / 2, first = group % 2 * 16;
    const float scale = d * static_cast<float>(scales[group] & 15);
    const float minimum = low * static_cast<float>(scales[group] >> 4);
    const Bytes from = bits + 32 * half + first;
    for (int i = 0; i < 16; i++)
      *out++ = scale * static_cast<float>(from[i] >> (2 * j) & 3) - minimum;
  }
}

// The scale of a group (0 to 15) of a Q3_K block. A scale has 6 bits: bytes 0 to 7 hold the low
// four bits of all scales, bytes 8 to 11 the high two.
int q3_k_scale(Bytes scales, int group) {
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  return (low | (scales[8 + group % 4] >> (2 * (group / 4)) & 3) << 4) - 32;
}

// As Q2_K, with a third bit per element: bit 4 half + j of the mask's byte. If this bit is cleared,
// 4 is subtracted.
void q3_k(Bytes block, float* out) {
  const Bytes mask = block, bits = block + 32, scales = block + 96;
  const float d = half_at(block + 108);
  for (int group = 0; group < 16; group++) {
    const int half = group / 8, j = group % 8 / 2, first = group % 2 * 16;
    const float scale = d * static_cast<float>(q3_k_scale(scales, group));
    for (int i = first; i < first + 16; i++) {
      const int low = bits[32 * half + i] >> (2 * j) & 3;
      const int offset = mask[i] >> (4 * half + j) & 1 ? 0 : 4;
      *out++ = scale * static_cast<float>(low - offset);
    }
  }
}

// The scale and the minimum of one of the 8 groups of a Q4_K or Q5_K block. Each has 6 bits; a
// block packs all of them into 12 bytes.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum six_bits(Bytes packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | packed[group - 4] >> 6 << 4,
          packed[group + 4] >> 4 | packed[group] >> 6 << 4};
}

// 8 groups of 32 elements of 4 bits; the nibbles of 32 bytes are two groups, the low ones first.
void q4_k(Bytes block, float* out) {
  const float d = half_at(block), low = half_at(block + 2);
  for (int group = 0; group < 8; group++) {
    const auto [scale, minimum] = six_bits(block + 4, group);
    const float s = d * static_cast<float>(scale), m = low * static_cast<float>(minimum);
    const Bytes nibbles = block + 16 + 32 * (group / 2);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; i++) *out++ = s * static_cast<float>(nibbles[i] >> shift & 15) - m;
  }
}

// As Q4_K, with a fifth bit per element: bit `group` of byte i of the 32 bytes before the nibbles.
void q5_k(Bytes block, float* out) {
  const float d = half_at(block), low = half_at(block + 2);
  const Bytes high = block + 16;
  for (int group = 0; group < 8; group++) {
    const auto [scale, minimum] = six_bits(block + 4, group);
    const float s = d * static_cast<float>(scale), m = low * static_cast<float>(minimum);
    const Bytes nibbles = block + 48 + 32 * (group / 2);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; i++) {
      const int q = (nibbles[i] >> shift & 15) | (high[i] >> group & 1) << 4;
      *out++ = s * static_cast<float>(q) - m;
    }
  }
}

// 16 groups of 16 elements of 6 bits. In a half of 128 elements, the low four bits of element 32 j
// + i are in byte 32 (j % 2) + i: in its low nibble for j < 2, else in its high nibble. The two
// high bits are bits 2j and 2j + 1 of byte i of the bytes after the nibbles.
void q6_k(Bytes block, float* out) {
  const float d = half_at(block + 208);
  for (int group = 0; group < 16; group++) {
    const int half = group / 8, j = group % 8 / 2, first = group % 2 * 16;
    const Bytes nibbles = block + 64 * half + 32 * (j % 2), high = block + 128 + 32 * half;
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + group]));
    for (int i = first; i < first + 16; i++) {
      const int low = nibbles[i] >> (j / 2 * 4) & 15;
      *out++ = scale * static_cast<float>((low | (high[i] >> (2 * j) & 3) << 4) - 32);
    }
  }
}

// 8 groups of 32 elements, which are indices of kLevels. A scale has 6 bits: a nibble and two high
// bits, which are stored apart.
void iq4_xs(Bytes block, float* out) {
  const float d = half_at(block);
  const int high = u16_at(block + 2);
  for (int group = 0; group < 8; group++) {
    const int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    const float scale = d * static_cast<float>((low | (high >> (2 * group) & 3) << 4) - 32);
    const Bytes nibbles = block + 8 + 16 * group;
    for (int i = 0; i < 16; i++) {
      out[i] = scale * kLevels[nibbles[i] & 15];
      out[i + 16] = scale * kLevels[nibbles[i] >> 4];
    }
    out += 32;
  }
}

void f32(Bytes block, float* out) {
  std::memcpy(out, block, sizeof *out);
}
void f16(Bytes block, float* out) {
  *out = half_at(block);
}
void bf16(Bytes block, float* out) {
  *out = kernels::f32_from_bf16(u16_at(block));
}

template <void (*decode)(Bytes, float*)>
void each_block(std::string_view blocks, const GgmlTypeInfo& type, float* out) {
  const auto* from = reinterpret_cast<Bytes>(blocks.data());
  const std::size_t n = blocks.size() / static_cast<std::size_t>(type.block_bytes);
  for (std::size_t i = 0; i < n; i++, from += type.block_bytes, out += type.block_size)
    decode(from, out);
}

void append_u16(std::string& out, std::uint16_t bits) {
  const char bytes[] = {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};
  out.append(bytes, sizeof bytes);
}

void append_half(std::string& out, float x) {
  append_u16(out, kernels::f16_from_f32(x));
}

float inverse_or_0(float x) {
  return x != 0 ? 1 / x : 0;
}

// Truncates x to an integer and clamps it to 0 to 15. NaN becomes 0.
int nibble_of(float x) {
  if (x >= 15) return 15;
  return x > 0 ? static_cast<int>(x) : 0;
}

void append_nibbles(std::string& out, const std::array<int, 32>& q) {
  for (std::size_t i = 0; i < 16; i++) out += static_cast<char>(q[i] | q[i + 16] << 4);
}

using Block = std::span<const float, 32>;

// The scale is the element of the largest magnitude divided by -8, so that it is stored exactly.
void encode_q4_0(Block x, std::string& out) {
  float largest = 0;
  for (const float v : x)
    if (std::abs(v) > std::abs(largest)) largest = v;
  const float d = largest / -8, inverse = inverse_or_0(d);
  std::array<int, 32> q{};
  for (std::size_t i = 0; i < 32; i++) q[i] = nibble_of(x[i] * inverse + 8.5F);
  append_half(out, d);
  append_nibbles(out, q);
}

void encode_q4_1(Block x, std::string& out) {
  const auto [low, high] = std::ranges::minmax(x);
  const float d = (high - low) / 15, inverse = inverse_or_0(d);
  std::array<int, 32> q{};
  for (std::size_t i = 0; i < 32; i++) q[i] = nibble_of((x[i] - low) * inverse + 0.5F);
  append_half(out, d);
  append_half(out, low);
  append_nibbles(out, q);
}

void encode_q8_0(Block x, std::string& out) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  const float d = largest / 127, inverse = inverse_or_0(d);
  append_half(out, d);
  for (const float v : x) {
    const float q = std::round(v * inverse);
    const bool in_range = q >= -127 && q <= 127;
    out += static_cast<char>(in_range ? static_cast<std::int8_t>(q)
                             : q > 0  ? 127
                             : q < 0  ? -127
                                      : 0);
  }
}

void encode_blocks(std::span<const float> values,
                   std::string& out,
                   void (*encode)(Block, std::string&)) {
  for (std::size_t i = 0; i < values.size(); i += 32) encode(values.subspan(i).first<32>(), out);
}

constexpr GgmlType kWritable[] = {GgmlType::F32,  GgmlType::F16,  GgmlType::BF16,
                                  GgmlType::Q8_0, GgmlType::Q4_0, GgmlType::Q4_1};

}  // namespace

void dequantise(GgmlType type, std::string_view blocks, float* out) {
  const GgmlTypeInfo& info = info_of(type);
  switch (type) {
    case GgmlType::F32:
      return each_block<f32>(blocks, info, out);
    case GgmlType::F16:
      return each_block<f16>(blocks, info, out);
    case GgmlType::BF16:
      return each_block<bf16>(blocks, info, out);
    case GgmlType::Q4_0:
      return each_block<q4_0>(blocks, info, out);
    case GgmlType::Q4_1:
      return each_block<q4_1>(blocks, info, out);
    case GgmlType::Q5_0:
      return each_block<q5_0>(blocks, info, out);
    case GgmlType::Q5_1:
      return each_block<q5_1>(blocks, info, out);
    case GgmlType::Q8_0:
      return each_block<q8_0>(blocks, info, out);
    case GgmlType::Q2_K:
      return each_block<q2_k>(blocks, info, out);
    case GgmlType::Q3_K:
      return each_block<q3_k>(blocks, info, out);
    case GgmlType::Q4_K:
      return each_block<q4_k>(blocks, info, out);
    case GgmlType::Q5_K:
      return each_block<q5_k>(blocks, info, out);
    case GgmlType::Q6_K:
      return each_block<q6_k>(blocks, info, out);
    case GgmlType::IQ4_NL:
      return each_block<iq4_nl>(blocks, info, out);
    case GgmlType::IQ4_XS:
      return each_block<iq4_xs>(blocks, info, out);
  }
}

std::span<const GgmlType> writable_ggml_types() {
  return kWritable;
}

std::optional<GgmlType> writable_ggml_type(std::string_view name) {
  const auto same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  for (const GgmlType type : kWritable)
    if (std::ranges::equal(name, std::string_view(name_of(type)), same)) return type;
  return std::nullopt;
}

void quantise(GgmlType type, std::span<const float> values, std::string& out) {
  const auto block = static_cast<std::size_t>(info_of(type).block_size);
  ensure(values.size() % block == 0, "quantise: whole blocks");
  switch (type) {
    case GgmlType::F32:
      out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
      return;
    case GgmlType::F16:
      for (const float x : values) append_half(out, x);
      return;
    case GgmlType::BF16:
      for (const float x : values) append_u16(out, kernels::bf16_from_f32(x));
      return;
    case GgmlType::Q4_0:
      return encode_blocks(values, out, encode_q4_0);
    case GgmlType::Q4_1:
      return encode_blocks(values, out, encode_q4_1);
    case GgmlType::Q8_0:
      return encode_blocks(values, out, encode_q8_0);
    default:
      ensure(false, "quantise: a writable type");
  }
}

}  // namespace engine
