// Decoding and encoding of blocks against gguf-py (tests/fixtures/make_gguf_fixtures.py), bit for
// bit; a NaN equals any NaN.
#include <bit>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/gguf/gguf_file.h"

namespace engine::test {
namespace {

const GgufFile& fixture() {
  static const auto file = GgufFile::open(DECOSCOPE_SOURCE_DIR "/tests/fixtures/gguf/blocks.gguf");
  return *file;
}

const GgufTensor& tensor(const std::string& name) {
  for (const GgufTensor& tensor : fixture().tensors())
    if (tensor.name == name) return tensor;
  throw std::runtime_error("no tensor " + name);
}

std::vector<float> floats(const GgufTensor& tensor) {
  std::vector<float> out(static_cast<std::size_t>(tensor.n_elements()));
  std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

class Dequantise : public testing::TestWithParam<GgmlType> {};

TEST_P(Dequantise, gives_the_bits_of_gguf_py) {
  const std::string name = name_of(GetParam());
  const GgufTensor& blocks = tensor(name);
  const std::vector<float> expected = floats(tensor(name + ".values"));
  ASSERT_EQ(static_cast<std::int64_t>(expected.size()), blocks.n_elements());
  std::vector<float> values(expected.size(), -1);
  dequantise(GetParam(), blocks.bytes, values.data());
  for (std::size_t i = 0; i < values.size(); i++)
    ASSERT_TRUE(same_bits(values[i], expected[i]))
        << "element " << i << ": " << values[i] << ", expected " << expected[i];
}

// GG34: a block of zero scales is zeros, not NaN.
TEST_P(Dequantise, zero_scales_give_zeros) {
  const GgmlTypeInfo& info = info_of(GetParam());
  const std::string blocks(static_cast<std::size_t>(info.block_bytes), '\0');
  std::vector<float> values(static_cast<std::size_t>(info.block_size), -1);
  dequantise(GetParam(), blocks, values.data());
  for (const float value : values) ASSERT_EQ(value, 0);
}

// A tensor with a dimension of 0. UBSan reports a null pointer that memcpy() gets.
TEST_P(Dequantise, no_blocks_write_nothing) {
  float value = -1;
  dequantise(GetParam(), {}, &value);
  EXPECT_EQ(value, -1);
  dequantise(GetParam(), {}, nullptr);
}

INSTANTIATE_TEST_SUITE_P(types,
                         Dequantise,
                         testing::Values(GgmlType::F16,
                                         GgmlType::BF16,
                                         GgmlType::Q4_0,
                                         GgmlType::Q4_1,
                                         GgmlType::Q5_0,
                                         GgmlType::Q5_1,
                                         GgmlType::Q8_0,
                                         GgmlType::Q2_K,
                                         GgmlType::Q3_K,
                                         GgmlType::Q4_K,
                                         GgmlType::Q5_K,
                                         GgmlType::Q6_K,
                                         GgmlType::IQ4_NL,
                                         GgmlType::IQ4_XS),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(Quantise, gives_the_bytes_of_gguf_py) {
  const std::vector<float> input = floats(tensor("input"));
  for (const GgmlType type : writable_ggml_types()) {
    if (type == GgmlType::F32) continue;
    std::string blocks;
    quantise(type, input, blocks);
    EXPECT_TRUE(blocks == tensor(std::string("to.") + name_of(type)).bytes) << name_of(type);
  }
}

TEST(Quantise, decoded_blocks_become_the_same_blocks) {
  std::vector<float> values = floats(tensor("input"));
  for (const GgmlType type : writable_ggml_types()) {
    if (type == GgmlType::Q4_1) continue;  // rounds its minimum, which is not restored exactly
    std::string once, twice;
    quantise(type, values, once);
    std::vector<float> decoded(values.size());
    dequantise(type, once, decoded.data());
    quantise(type, decoded, twice);
    std::vector<float> again(values.size());
    dequantise(type, twice, again.data());
    for (std::size_t i = 0; i < values.size(); i++)
      ASSERT_TRUE(same_bits(decoded[i], again[i]) || decoded[i] == again[i]) << name_of(type) << i;
  }
}

TEST(Quantise, values_that_are_not_finite_stay_in_range) {
  std::vector<float> values(32, NAN);
  values.resize(64, 1e-44F);  // 1 / scale of this block overflows
  values[33] = INFINITY;
  values[34] = -INFINITY;
  for (const GgmlType type : writable_ggml_types()) {
    std::string blocks;
    quantise(type, values, blocks);
    const GgmlTypeInfo& info = info_of(type);
    ASSERT_EQ(static_cast<int>(blocks.size()), 64 / info.block_size * info.block_bytes);
    if (info.block_size == 1) continue;
    // A block ends with its integers, which are 0 for NaN.
    const std::size_t n_bytes = type == GgmlType::Q8_0 ? 32 : 16;
    const auto end = static_cast<std::size_t>(info.block_bytes);
    EXPECT_EQ(blocks.substr(end - n_bytes, n_bytes), std::string(n_bytes, '\0')) << name_of(type);
  }
}

TEST(Quantise, types_are_found_by_name) {
  EXPECT_EQ(writable_ggml_type("q8_0"), GgmlType::Q8_0);
  EXPECT_EQ(writable_ggml_type("BF16"), GgmlType::BF16);
  EXPECT_EQ(writable_ggml_type("Q4_K"), std::nullopt);
  EXPECT_EQ(writable_ggml_type(""), std::nullopt);
}

}  // namespace
}  // namespace engine::test
