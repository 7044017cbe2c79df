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
constexpr std::array<std::int8_t, 16> kLevels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};

// One block as integers, with a scale and a minimum for each group of elements.
struct Block {
  std::array<std::int8_t, 256> q;
  std::array<float, 16> scale, minimum;
};

// Each function below unpacks one block. If a block of 32 elements has 16 bytes of nibbles, the low
// nibbles are elements 0 to 15 and the high nibbles 16 to 31.

std::int8_t as_q(int value) {
  return static_cast<std::int8_t>(value);
}

void q4_0(Bytes block, Block& out) {
  out.scale[0] = half_at(block);
  for (std::size_t i = 0; i < 16; i++) {
    out.q[i] = as_q((block[2 + i] & 15) - 8);
    out.q[i + 16] = as_q((block[2 + i] >> 4) - 8);
  }
}

void q4_1(Bytes block, Block& out) {
  out.scale[0] = half_at(block);
  out.minimum[0] = half_at(block + 2);
  for (std::size_t i = 0; i < 16; i++) {
    out.q[i] = as_q(block[4 + i] & 15);
    out.q[i + 16] = as_q(block[4 + i] >> 4);
  }
}

// Adds the fifth bit of element i to its nibble: bit i of the 32 bits at `high`.
int five_bits(int nibble, Bytes high, std::size_t i) {
  return nibble | (high[i / 8] >> (i % 8) & 1) << 4;
}

void q5_0(Bytes block, Block& out) {
  out.scale[0] = half_at(block);
  const Bytes high = block + 2, nibbles = block + 6;
  for (std::size_t i = 0; i < 16; i++) {
    out.q[i] = as_q(five_bits(nibbles[i] & 15, high, i) - 16);
    out.q[i + 16] = as_q(five_bits(nibbles[i] >> 4, high, i + 16) - 16);
  }
}

void q5_1(Bytes block, Block& out) {
  out.scale[0] = half_at(block);
  out.minimum[0] = half_at(block + 2);
  const Bytes high = block + 4, nibbles = block + 8;
  for (std::size_t i = 0; i < 16; i++) {
    out.q[i] = as_q(five_bits(nibbles[i] & 15, high, i));
    out.q[i + 16] = as_q(five_bits(nibbles[i] >> 4, high, i + 16));
  }
}

void q8_0(Bytes block, Block& out) {
  out.scale[0] = half_at(block);
  for (std::size_t i = 0; i < 32; i++) out.q[i] = static_cast<std::int8_t>(block[2 + i]);
}

void iq4_nl(Bytes block, Block& out) {
  out.scale[0] = half_at(block);
  for (std::size_t i = 0; i < 16; i++) {
    out.q[i] = kLevels[block[2 + i] & 15];
    out.q[i + 16] = kLevels[block[2 + i] >> 4];
  }
}

// A block of 256: 16 groups of 16 elements of 2 bits, each with a scale and a minimum of 4 bits.
// Bytes 32 half .. 32 half + 31 hold the 128 elements of a half: bits 2j, 2j + 1 of byte i are
// element 32 j + i.
void q2_k(Bytes block, Block& out) {
  const Bytes scales = block, bits = block + 16;
  const float d = half_at(block + 80), low = half_at(block + 82);
  for (std::size_t group = 0; group < 16; group++) {
    const std::size_t half = group / 8, j = group % 8 / 2, first = group % 2 * 16;
    out.scale[group] = d * static_cast<float>(scales[group] & 15);
    out.minimum[group] = -low * static_cast<float>(scales[group] >> 4);
    const Bytes from = bits + 32 * half + first;
    for (std::size_t i = 0; i < 16; i++) out.q[16 * group + i] = as_q(from[i] >> (2 * j) & 3);
  }
}

// The scale of a group (0 to 15) of a Q3_K block. A scale has 6 bits: bytes 0 to 7 hold the low
// four bits of all scales, bytes 8 to 11 the high two.
int q3_k_scale(Bytes scales, std::size_t group) {
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  return (low | (scales[8 + group % 4] >> (2 * (group / 4)) & 3) << 4) - 32;
}

// As Q2_K, with a third bit per element: bit 4 half + j of the mask's byte. If this bit is cleared,
// 4 is subtracted.
void q3_k(Bytes block, Block& out) {
  const Bytes mask = block, bits = block + 32, scales = block + 96;
  const float d = half_at(block + 108);
  for (std::size_t group = 0; group < 16; group++) {
    const std::size_t half = group / 8, j = group % 8 / 2, first = group % 2 * 16;
    out.scale[group] = d * static_cast<float>(q3_k_scale(scales, group));
    for (std::size_t i = 0; i < 16; i++) {
      const int low = bits[32 * half + first + i] >> (2 * j) & 3;
      const int offset = mask[first + i] >> (4 * half + j) & 1 ? 0 : 4;
      out.q[16 * group + i] = as_q(low - offset);
    }
  }
}

// The scale and the minimum of one of the 8 groups of a Q4_K or Q5_K block. Each has 6 bits; a
// block packs all of them into 12 bytes.
struct ScaleAndMinimum {
  int scale, minimum;
};
ScaleAndMinimum six_bits(Bytes packed, std::size_t group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | packed[group - 4] >> 6 << 4,
          packed[group + 4] >> 4 | packed[group] >> 6 << 4};
}

void unpack_six_bits(Bytes block, std::size_t group, Block& out) {
  const auto [scale, minimum] = six_bits(block + 4, group);
  out.scale[group] = half_at(block) * static_cast<float>(scale);
  out.minimum[group] = -half_at(block + 2) * static_cast<float>(minimum);
}

// 8 groups of 32 elements of 4 bits; the nibbles of 32 bytes are two groups, the low ones first.
void q4_k(Bytes block, Block& out) {
  for (std::size_t group = 0; group < 8; group++) {
    unpack_six_bits(block, group, out);
    const Bytes nibbles = block + 16 + 32 * (group / 2);
    const std::size_t shift = group % 2 * 4;
    for (std::size_t i = 0; i < 32; i++) out.q[32 * group + i] = as_q(nibbles[i] >> shift & 15);
  }
}

// As Q4_K, with a fifth bit per element: bit `group` of byte i of the 32 bytes before the nibbles.
void q5_k(Bytes block, Block& out) {
  const Bytes high = block + 16;
  for (std::size_t group = 0; group < 8; group++) {
    unpack_six_bits(block, group, out);
    const Bytes nibbles = block + 48 + 32 * (group / 2);
    const std::size_t shift = group % 2 * 4;
    for (std::size_t i = 0; i < 32; i++)
      out.q[32 * group + i] = as_q((nibbles[i] >> shift & 15) | (high[i] >> group & 1) << 4);
  }
}

// 16 groups of 16 elements of 6 bits. In a half of 128 elements, the low four bits of element 32 j
// + i are in byte 32 (j % 2) + i: in its low nibble for j < 2, else in its high nibble. The two
// high bits are bits 2j and 2j + 1 of byte i of the bytes after the nibbles.
void q6_k(Bytes block, Block& out) {
  const float d = half_at(block + 208);
  for (std::size_t group = 0; group < 16; group++) {
    const std::size_t half = group / 8, j = group % 8 / 2, first = group % 2 * 16;
    const Bytes nibbles = block + 64 * half + 32 * (j % 2) + first;
    const Bytes high = block + 128 + 32 * half + first;
    out.scale[group] = d * static_cast<float>(static_cast<std::int8_t>(block[192 + group]));
    for (std::size_t i = 0; i < 16; i++) {
      const int low = nibbles[i] >> (j / 2 * 4) & 15;
      out.q[16 * group + i] = as_q((low | (high[i] >> (2 * j) & 3) << 4) - 32);
    }
  }
}

// 8 groups of 32 elements, which are indices of kLevels. A scale has 6 bits: a nibble and two high
// bits, which are stored apart.
void iq4_xs(Bytes block, Block& out) {
  const float d = half_at(block);
  const int high = u16_at(block + 2);
  for (std::size_t group = 0; group < 8; group++) {
    const int low = block[4 + group / 2] >> (group % 2 * 4) & 15;
    out.scale[group] = d * static_cast<float>((low | (high >> (2 * group) & 3) << 4) - 32);
    const Bytes nibbles = block + 8 + 16 * group;
    for (std::size_t i = 0; i < 16; i++) {
      out.q[32 * group + i] = kLevels[nibbles[i] & 15];
      out.q[32 * group + i + 16] = kLevels[nibbles[i] >> 4];
    }
  }
}

// How a quantised type is unpacked.
struct Unpacker {
  GgmlType type;
  void (*block)(Bytes, Block&);
  int group;  // elements that share a scale
  bool has_minimum;
  kernels::DType format;  // of packed weights with the same values
};
constexpr Unpacker kUnpackers[] = {
    {GgmlType::Q4_0, q4_0, 32, false, kernels::DType::Q4_0},
    {GgmlType::Q4_1, q4_1, 32, true, kernels::DType::Q4_1},
    {GgmlType::Q5_0, q5_0, 32, false, kernels::DType::Q8_0},
    {GgmlType::Q5_1, q5_1, 32, true, kernels::DType::Q8_G},
    {GgmlType::Q8_0, q8_0, 32, false, kernels::DType::Q8_0},
    {GgmlType::Q2_K, q2_k, 16, true, kernels::DType::Q8_G},
    {GgmlType::Q3_K, q3_k, 16, false, kernels::DType::Q8_G},
    {GgmlType::Q4_K, q4_k, 32, true, kernels::DType::Q4_K},
    {GgmlType::Q5_K, q5_k, 32, true, kernels::DType::Q8_G},
    {GgmlType::Q6_K, q6_k, 16, false, kernels::DType::Q8_G},
    {GgmlType::IQ4_NL, iq4_nl, 32, false, kernels::DType::Q8_0},
    {GgmlType::IQ4_XS, iq4_xs, 32, false, kernels::DType::Q8_G},
};

const Unpacker& unpacker_of(GgmlType type) {
  const auto* found = std::ranges::find(kUnpackers, type, &Unpacker::type);
  ensure(found != std::end(kUnpackers), "ggml_blocks: a quantised type");
  return *found;
}

// Calls use(block) for each block, unpacked.
template <class Use>
void for_each_block(const Unpacker& unpacker, std::string_view blocks, const Use& use) {
  const auto block_bytes = static_cast<std::size_t>(info_of(unpacker.type).block_bytes);
  Block block{};
  for (std::size_t at = 0; at + block_bytes <= blocks.size(); at += block_bytes) {
    unpacker.block(reinterpret_cast<Bytes>(blocks.data()) + at, block);
    use(block);
  }
}

// Multiplies and adds without contraction, as llama.cpp does.
void dequantise_blocks(const Unpacker& unpacker, std::string_view blocks, float* out) {
  const auto group = static_cast<std::size_t>(unpacker.group);
  const std::size_t n_groups = static_cast<std::size_t>(info_of(unpacker.type).block_size) / group;
  for_each_block(unpacker, blocks, [&](const Block& block) {
    for (std::size_t g = 0; g < n_groups; g++) {
      const float scale = block.scale[g], minimum = block.minimum[g];
      const std::int8_t* q = block.q.data() + g * group;
      for (std::size_t i = 0; i < group; i++) {
        const float product = scale * static_cast<float>(q[i]);
        *out++ = unpacker.has_minimum ? product + minimum : product;
      }
    }
  });
}

void copy_u16(std::string_view elements, float* out, float (*as_f32)(std::uint16_t)) {
  const auto* from = reinterpret_cast<Bytes>(elements.data());
  for (std::size_t i = 0; i + 2 <= elements.size(); i += 2) *out++ = as_f32(u16_at(from + i));
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

using Elements = std::span<const float, 32>;

// The scale is the element of the largest magnitude divided by -8, so that it is stored exactly.
void encode_q4_0(Elements x, std::string& out) {
  float largest = 0;
  for (const float v : x)
    if (std::abs(v) > std::abs(largest)) largest = v;
  const float d = largest / -8, inverse = inverse_or_0(d);
  std::array<int, 32> q{};
  for (std::size_t i = 0; i < 32; i++) q[i] = nibble_of(x[i] * inverse + 8.5F);
  append_half(out, d);
  append_nibbles(out, q);
}

void encode_q4_1(Elements x, std::string& out) {
  const auto [low, high] = std::ranges::minmax(x);
  const float d = (high - low) / 15, inverse = inverse_or_0(d);
  std::array<int, 32> q{};
  for (std::size_t i = 0; i < 32; i++) q[i] = nibble_of((x[i] - low) * inverse + 0.5F);
  append_half(out, d);
  append_half(out, low);
  append_nibbles(out, q);
}

void encode_q8_0(Elements x, std::string& out) {
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
                   void (*encode)(Elements, std::string&)) {
  for (std::size_t i = 0; i < values.size(); i += 32) encode(values.subspan(i).first<32>(), out);
}

constexpr GgmlType kWritable[] = {GgmlType::F32,  GgmlType::F16,  GgmlType::BF16,
                                  GgmlType::Q8_0, GgmlType::Q4_0, GgmlType::Q4_1};

}  // namespace

void dequantise(GgmlType type, std::string_view blocks, float* out) {
  if (blocks.empty()) return;  // `out` may be null
  if (is_quantised(type)) return dequantise_blocks(unpacker_of(type), blocks, out);
  if (type == GgmlType::F32)
    std::memcpy(out, blocks.data(), blocks.size());
  else
    copy_u16(blocks, out, type == GgmlType::F16 ? kernels::f32_from_f16 : kernels::f32_from_bf16);
}

kernels::DType packed_format(GgmlType type) {
  return unpacker_of(type).format;
}

QuantisedTensor unpack(GgmlType type, std::string_view blocks, std::vector<std::int64_t> shape) {
  const Unpacker& unpacker = unpacker_of(type);
  const auto block_size = static_cast<std::size_t>(info_of(type).block_size);
  const auto group = static_cast<std::size_t>(unpacker.group);
  const std::size_t n =
      blocks.size() / static_cast<std::size_t>(info_of(type).block_bytes) * block_size;
  QuantisedTensor out{
      .format = unpacker.format, .shape = std::move(shape), .group = unpacker.group};
  out.q.reserve(n);
  out.scale.reserve(n / group);
  if (unpacker.has_minimum) out.minimum.reserve(n / group);
  const auto n_groups = static_cast<std::ptrdiff_t>(block_size / group);
  for_each_block(unpacker, blocks, [&](const Block& block) {
    out.q.insert(out.q.end(), block.q.begin(),
                 block.q.begin() + static_cast<std::ptrdiff_t>(block_size));
    out.scale.insert(out.scale.end(), block.scale.begin(), block.scale.begin() + n_groups);
    if (unpacker.has_minimum)
      out.minimum.insert(out.minimum.end(), block.minimum.begin(),
                         block.minimum.begin() + n_groups);
  });
  return out;
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

QuantisedTensor rounded(const Tensor& matrix, kernels::DType format) {
  const auto* type = std::ranges::find_if(kWritable, [&](GgmlType writable) {
    return is_quantised(writable) && packed_format(writable) == format;
  });
  ensure(type != std::end(kWritable), "rounded: the format is one that quantise() writes");
  std::string blocks;
  quantise(*type, f32_of(matrix), blocks);
  return unpack(*type, blocks, matrix.shape);
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
