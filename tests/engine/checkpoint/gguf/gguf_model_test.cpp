// Models in GGUF files: those that llama.cpp's converter made of Hugging Face directories
// (tests/fixtures/make_gguf_fixtures.py) have the directories' configuration and weights, and
// altered metadata is refused (rows GG24, GG25, GG29, GG32, GG33).
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/gguf/gguf_shards.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/non_finite.h"
#include "engine/store/weights_hash.h"
#include "tests/support/files.h"
#include "tests/support/models/gguf_bytes.h"
#include "tests/support/models/gguf_fixtures.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class GgufModel : public testing::TestWithParam<std::string> {
 protected:
  std::string directory() const { return kGgufFixtures + "/" + GetParam(); }
};

// The members of config.json that matter to the forward pass. Mistral's and LLaMA's are one
// architecture in GGUF files.
std::string shown(ModelConfig config) {
  config.eos_ids = {};
  config.bos_id = config.pad_id = std::nullopt;
  std::string text = config_json(config, kernels::DType::BF16);
  for (const LayerKind& kind : config.layer_kinds)
    text += fmt::format("{}{} ", kind.local, kind.rotated);
  return text + fmt::format("{} {} {} {}", config.attention_scale, config.embedding_multiplier,
                            config.norm_offset, config.qk_norm);
}

TEST_P(GgufModel, has_the_configuration_of_its_directory) {
  const ModelFiles gguf = open_without_tokenizer(directory() + "/model.gguf"),
                   hf = open_without_tokenizer(directory());
  EXPECT_EQ(shown(gguf.config), shown(hf.config));
  EXPECT_EQ(gguf.config.max_seq_len, hf.config.max_seq_len);
  EXPECT_EQ(gguf.stored_dtype, kernels::DType::BF16);
  EXPECT_EQ(gguf.name, "model");
}

TEST_P(GgufModel, has_the_weights_of_its_directory) {
  const ModelFiles gguf = open_without_tokenizer(directory() + "/model.gguf"),
                   hf = open_without_tokenizer(directory());
  for (const TensorSpec& spec : tensors_of(hf.config)) {
    const std::vector<float> found = f32_of(gguf.tensors->read(spec.name));
    const std::vector<float> expected = f32_of(hf.tensors->read(spec.name));
    ASSERT_EQ(found.size(), expected.size()) << spec.name;
    for (std::size_t i = 0; i < found.size(); i++) {
      // Norms of Gemma are stored with an offset of 1, in bf16's 8 bits beside it.
      const bool has_offset = hf.config.norm_offset != 0 && spec.name.ends_with("norm.weight");
      if (has_offset)
        ASSERT_NEAR(found[i], expected[i], 1.0 / (1 << 23)) << spec.name << " " << i;
      else
        ASSERT_EQ(found[i], expected[i]) << spec.name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(converted,
                         GgufModel,
                         testing::ValuesIn(gguf_fixture_names()),
                         [](const auto& name) { return name.param; });

// ---- a small model made by hand

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ8 = 8;
constexpr std::uint64_t kDim = 32, kVocab = 40;

std::string floats(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; i++) out += raw(0.01F * static_cast<float>(i % 37) - 0.1F);
  return out;
}

GgufBytes metadata() {
  GgufBytes bytes;
  bytes.text("general.architecture", "llama").u32("llama.context_length", 64);
  bytes.u32("llama.embedding_length", kDim).u32("llama.feed_forward_length", kDim);
  bytes.u32("llama.attention.head_count_kv", 2);
  bytes.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  return bytes;
}

// Adds the tensors of one layer; `type` is that of the embedding, all others are F32.
GgufBytes& add_tensors(GgufBytes& bytes,
                       std::uint32_t type = kF32,
                       std::uint64_t n_tokens = kVocab) {
  const auto matrix = [&](const char* name, std::uint64_t n_in, std::uint64_t n_out) {
    bytes.tensor(name, {n_in, n_out}, kF32, floats(n_in * n_out));
  };
  const auto norm = [&](const char* name) { bytes.tensor(name, {kDim}, kF32, floats(kDim)); };
  const std::size_t n_bytes = type == kF32   ? kDim * n_tokens * 4
                              : type == kF16 ? kDim * n_tokens * 2
                                             : n_tokens * 34;
  bytes.tensor("token_embd.weight", {kDim, n_tokens}, type, std::string(n_bytes, '\x11'));
  norm("blk.0.attn_norm.weight");
  matrix("blk.0.attn_q.weight", kDim, kDim);
  matrix("blk.0.attn_k.weight", kDim, kDim / 2);
  matrix("blk.0.attn_v.weight", kDim, kDim / 2);
  matrix("blk.0.attn_output.weight", kDim, kDim);
  norm("blk.0.ffn_norm.weight");
  for (const char* name : {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"})
    matrix(name, kDim, kDim);
  norm("output_norm.weight");
  return bytes;
}

GgufBytes usual() {
  GgufBytes bytes = metadata();
  bytes.u32("llama.block_count", 1).u32("llama.attention.head_count", 4);
  return bytes;
}

std::string refused(GgufBytes bytes) {
  const Folder dir;
  write_file(dir / "m.gguf", bytes.bytes());
  const std::string message = refusal([&] { open_without_tokenizer(dir / "m.gguf"); });
  EXPECT_THAT(message, AllOf(HasSubstr("m.gguf: "), HasSubstr("found "), HasSubstr("expected ")));
  return without_offset(message);
}

// A usual file with further metadata.
template <typename Add>
std::string refused_with(Add add) {
  GgufBytes bytes = usual();
  add(bytes);
  return refused(add_tensors(bytes));
}

TEST(GgufModels, a_small_file_opens) {
  const Folder dir;
  GgufBytes bytes = usual();
  bytes.text("tokenizer.chat_template", "{{ messages }}").u32("tokenizer.ggml.eos_token_id", 3);
  write_file(dir / "Small.Q8_0.gguf",
             add_tensors(bytes, kQ8).tensor("extra", {1}, 0, "abcd").bytes());
  const ModelFiles files = open_without_tokenizer(dir / "Small.Q8_0.gguf");
  EXPECT_EQ(files.name, "Small.Q8_0");
  EXPECT_EQ(files.config.n_heads, 4);
  EXPECT_EQ(files.config.n_kv_heads, 2);
  EXPECT_EQ(files.config.head_dim, 8);
  EXPECT_EQ(files.config.vocab_size, static_cast<int>(kVocab));
  EXPECT_TRUE(files.config.tied_embeddings);
  EXPECT_EQ(files.config.rope.theta, 10000);
  EXPECT_EQ(files.config.eos_ids, std::vector<TokenId>{3});
  EXPECT_EQ(files.chat_template, "{{ messages }}");
  EXPECT_EQ(files.stored_type, "F32");
  ASSERT_EQ(files.notices.size(), 1U);
  EXPECT_THAT(
      files.notices[0],
      HasSubstr(
          "1 tensors are ignored because this kind of model does not use them, e.g. \"extra\""));
}

TEST(GgufModels, the_dtype_is_that_of_most_weights) {
  const Folder dir;
  for (const std::uint64_t n_tokens :
       {kVocab, 10 * kVocab}) {  // the other weights: 6 matrices of 32 x 32
    GgufBytes bytes = usual();
    write_file(dir / "m.gguf", add_tensors(bytes, kF16, n_tokens).bytes());
    EXPECT_EQ(open_without_tokenizer(dir / "m.gguf").stored_dtype,
              n_tokens == kVocab ? kernels::DType::F32 : kernels::DType::F16);
  }
}

TEST(GgufModels, other_architectures_are_refused_by_name) {  // GG24
  GgufBytes bytes;
  bytes.text("general.architecture", "mamba");
  EXPECT_THAT(refused(add_tensors(bytes)),
              AllOf(HasSubstr("\"mamba\""), HasSubstr("llama, qwen2")));
}

TEST(GgufModels, a_vocabulary_is_no_model) {
  EXPECT_THAT(refused(usual()), HasSubstr("a vocabulary without weights"));
}

TEST(GgufModels, counts_out_of_range_name_their_key) {  // GG25
  const auto with = [](const char* key, std::uint32_t value) {
    GgufBytes bytes = metadata();
    if (std::string_view(key) != "llama.block_count") bytes.u32("llama.block_count", 1);
    bytes.u32(key, value);
    return refused(add_tensors(bytes));
  };
  EXPECT_THAT(with("llama.attention.head_count", 0),
              HasSubstr("head_count\": found 0, expected 1"));
  EXPECT_THAT(with("llama.attention.head_count", 5), HasSubstr("head_count"));
  EXPECT_THAT(with("llama.block_count", 0), HasSubstr("llama.block_count\": found 0"));
  EXPECT_THAT(with("llama.block_count", 1'000'000'000), HasSubstr("found 1000000000"));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.u32("llama.attention.value_length", 4); }),
              HasSubstr("value_length\": found 4, expected 8"));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.u32("llama.rope.dimension_count", 4); }),
              HasSubstr("dimension_count\": found 4, expected 8"));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.u32("llama.expert_count", 8); }),
              HasSubstr("a mixture of experts"));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.f32("llama.rope.freq_base", NAN); }),
              HasSubstr("rope.freq_base\": found nan"));
}

TEST(GgufModels, drafts_of_a_target_are_refused) {  // GG33
  const std::string key = "llama.target_layers";
  EXPECT_THAT(refused_with([&](GgufBytes& b) { b.i32s(key, {999}); }),
              HasSubstr("\"llama.target_layers\": found a draft that reads layers of its target"));
  EXPECT_THAT(
      refused_with([&](GgufBytes& b) { b.pair(key, 9, gguf_array(5, 1ULL << 31, "1234")); }),
      AllOf(HasSubstr(key), HasSubstr("an array of 2147483648 i32")));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.u32("llama.nextn_predict_layers", 1); }),
              HasSubstr("nextn_predict_layers\": found layers that predict further tokens"));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.u32("llama.nextn_predict_layers", 1U << 31); }),
              HasSubstr("nextn_predict_layers\": found 2147483648"));
  for (const char* name : {"eagle3", "dflash"}) {
    GgufBytes bytes;
    bytes.text("general.architecture", name).i32s(name + std::string(".target_layers"), {999});
    EXPECT_THAT(refused(add_tensors(bytes)), HasSubstr(fmt::format("\"{}\"", name)));
  }
}

TEST(GgufModels, per_layer_counts_are_equal_and_as_many_as_layers) {  // GG25
  const auto with = [](const std::vector<std::int32_t>& counts) {
    GgufBytes bytes = metadata();
    bytes.u32("llama.block_count", 1).i32s("llama.attention.head_count", counts);
    return add_tensors(bytes);
  };
  EXPECT_THAT(refused(with({4, 4})), HasSubstr("head_count\": found 2 values, expected one value"));
  EXPECT_THAT(refused(with({})), HasSubstr("head_count\": found an empty array"));
  for (const char* key : {"llama.block_count", "llama.expert_count"}) {
    GgufBytes bytes = metadata();
    bytes.i32s(key, {});
    EXPECT_THAT(refused(add_tensors(bytes)), HasSubstr(fmt::format("{}\": found an empty", key)));
  }
  const Folder dir;
  write_file(dir / "m.gguf", with({4}).bytes());
  EXPECT_EQ(open_without_tokenizer(dir / "m.gguf").config.n_heads, 4);
}

TEST(GgufModels, heads_have_at_least_two_dimensions) {
  GgufBytes bytes = metadata();
  bytes.u32("llama.block_count", 1).u32("llama.attention.head_count", kDim);
  bytes.tensor("rope_freqs.weight", {0}, kF32, "");
  EXPECT_THAT(refused(add_tensors(bytes)),
              HasSubstr("head_count\": found 32, expected at most half"));
}

TEST(GgufModels, token_ids_are_in_the_vocabulary) {  // GG29
  for (const std::uint32_t id : {40U, ~0U})
    EXPECT_THAT(
        refused_with([&](GgufBytes& b) { b.u32("tokenizer.ggml.eos_token_id", id); }),
        HasSubstr(fmt::format("eos_token_id\": found {}, expected a token id below 40", id)));
  EXPECT_THAT(refused_with([](GgufBytes& b) { b.pair("tokenizer.ggml.bos_token_id", 5, raw(-1)); }),
              HasSubstr("bos_token_id\": found -1"));
}

TEST(GgufModels, tensors_of_other_types_and_shapes_are_refused) {
  GgufBytes types = usual();
  types.tensor("token_embd.weight", {256, kVocab}, 16, std::string(66 * kVocab, '\0'));
  EXPECT_THAT(refused(types), HasSubstr("token_embd.weight\": found the type IQ2_XXS"));
  GgufBytes shape = usual();
  shape.tensor("output.weight", {kDim, 4 * kVocab}, kF32, floats(4 * kDim * kVocab));
  EXPECT_THAT(refused(add_tensors(shape)), HasSubstr("\"output.weight\": found [160, 32]"));
  GgufBytes missing = usual();
  missing.tensor("token_embd.weight", {kDim, kVocab}, kF32, floats(kDim * kVocab));
  EXPECT_THAT(refused(missing), HasSubstr("tensor \"blk.0.attn_norm.weight\": found none"));
}

TEST(GgufModels, weights_that_are_not_finite_are_reported) {  // GG34
  const Folder dir;
  GgufBytes bytes = usual();
  bytes.tensor("output.weight", {kDim, kVocab}, kQ8, std::string(34 * kVocab, '\xFF'));
  write_file(dir / "m.gguf", add_tensors(bytes).bytes());
  const ModelFiles files = open_without_tokenizer(dir / "m.gguf");
  EXPECT_FALSE(non_finite_faults(*files.tensors, tensors_of(files.config)).empty());
}

TEST(GgufModels, decoded_weights_are_rounded_to_the_dtype_of_their_use) {
  const Folder dir;
  GgufBytes bytes = usual();
  write_file(dir / "m.gguf", add_tensors(bytes, kQ8).bytes());
  const ModelFiles files = open_without_tokenizer(dir / "m.gguf");
  const Tensor f32 = files.tensors->read("model.embed_tokens.weight");
  for (const kernels::DType dtype : {kernels::DType::BF16, kernels::DType::F16}) {
    const Tensor found = files.tensors->read_for("model.embed_tokens.weight", dtype);
    ASSERT_EQ(found.dtype, dtype);
    std::vector<std::uint16_t> expected(static_cast<std::size_t>(f32.n_elements()));
    convert_elements(f32, 0, f32.n_elements(), dtype, expected.data());
    EXPECT_EQ(std::memcmp(found.data, expected.data(), 2 * expected.size()), 0);
    // Tensors of an element type stay as they are.
    EXPECT_EQ(files.tensors->read_for("model.layers.0.mlp.up_proj.weight", dtype).dtype,
              kernels::DType::F32);
  }
}

TEST(GgufModels, the_hash_depends_on_the_stored_bytes) {
  const Folder dir;
  GgufBytes f16 = usual(), f32 = usual();
  write_file(dir / "a.gguf", add_tensors(f16, kF16).bytes());
  write_file(dir / "b.gguf", add_tensors(f32, kF32).bytes());
  fs::copy_file(dir / "a.gguf", dir / "c.gguf");
  const std::string a = weights_hash(open_without_tokenizer(dir / "a.gguf"));
  EXPECT_NE(a, weights_hash(open_without_tokenizer(dir / "b.gguf")));
  EXPECT_EQ(a, weights_hash(open_without_tokenizer(dir / "c.gguf")));
}

// ---- split files

constexpr std::uint32_t kU16 = 2;

std::string part_name(int number) {
  return fmt::format("m-{:05}-of-00002.gguf", number);
}

GgufBytes& as_part(GgufBytes& bytes, std::uint16_t number, std::uint16_t count) {
  return bytes.pair("split.no", kU16, raw(number)).pair("split.count", kU16, raw(count));
}

// Writes the second part; the tensors are shared out by hand.
void write_second(const Folder& dir, std::uint16_t number, std::uint16_t count) {
  GgufBytes second;
  as_part(second, number, count).tensor("extra", {1}, 0, "abcd");
  write_file(dir / part_name(2), second.bytes());
}

void write_first(const Folder& dir, std::int32_t n_tensors = 12) {
  GgufBytes first = usual();
  as_part(first, 0, 2).pair("split.tensors.count", 5, raw(n_tensors));
  write_file(dir / part_name(1), add_tensors(first).bytes());
}

TEST(GgufModels, the_parts_of_a_split_model_are_one_model) {
  const Folder dir;
  write_first(dir);
  write_second(dir, 1, 2);
  const ModelFiles files = open_without_tokenizer(dir / part_name(1));
  EXPECT_EQ(files.name, "m");
  ASSERT_EQ(files.notices.size(), 2U);
  EXPECT_THAT(files.notices[0], HasSubstr("\"extra\""));
}

TEST(GgufModels, the_name_of_the_first_part_gives_the_others) {
  EXPECT_THAT(gguf_part_paths("a/m-00001-of-00002.gguf"),
              ElementsAre("a/m-00001-of-00002.gguf", "a/m-00002-of-00002.gguf"));
  for (const char* alone : {"a/m.gguf", "a/m-00002-of-00002.gguf", "m-00001-of-00000.gguf", "blob"})
    EXPECT_THAT(gguf_part_paths(alone), ElementsAre(alone));
}

TEST(GgufModels, parts_that_do_not_belong_are_refused) {  // GG32
  const Folder dir;
  write_first(dir);
  const auto message = [&] { return refusal([&] { open_without_tokenizer(dir / part_name(1)); }); };
  EXPECT_THAT(message(), AllOf(HasSubstr("m-00002-of-00002.gguf"), HasSubstr("part 2 of the 2")));
  write_second(dir, 0, 2);
  EXPECT_THAT(message(), AllOf(HasSubstr("m-00002-of-00002.gguf: key \"split.no\" (byte "),
                               HasSubstr("found 0, expected 1")));
  write_second(dir, 7, 2);
  EXPECT_THAT(message(), HasSubstr("found 7"));
  write_second(dir, 1, 3);
  EXPECT_THAT(message(), AllOf(HasSubstr("split.count\" (byte "), HasSubstr("found 3")));
  write_second(dir, 1, 2);
  write_first(dir, 99);
  EXPECT_THAT(message(), HasSubstr("found 12 tensors in all parts, expected 99"));
  EXPECT_THAT(refusal([&] { open_without_tokenizer(dir / part_name(2)); }),
              AllOf(HasSubstr("part 2 of 2"), HasSubstr("m-00001-of-00002.gguf")));
  fs::rename(dir / part_name(1), dir / "renamed.gguf");
  EXPECT_THAT(refusal([&] { open_without_tokenizer(dir / "renamed.gguf"); }),
              HasSubstr("file name"));
}

TEST(GgufModels, files_are_recognised_by_name_or_content) {
  const Folder dir;
  write_file(dir / "blob", "GGUF and more");
  write_file(dir / "x.GGUF", "other");
  write_file(dir / "y", "other");
  EXPECT_TRUE(is_gguf_path(dir / "blob"));
  EXPECT_TRUE(is_gguf_path(dir / "x.GGUF"));
  EXPECT_FALSE(is_gguf_path(dir / "y"));
  EXPECT_FALSE(is_gguf_path(dir.path()));
  EXPECT_FALSE(is_gguf_path(dir / "none.gguf"));
  EXPECT_EQ(find_model(dir / "blob", "assets"), dir / "blob");
}

}  // namespace
}  // namespace engine::test
