// Valid model directories: a written model is read back unchanged.
#include <cmath>
#include <cstring>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/random_weights.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/tokenizer/sentencepiece.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using testing::HasSubstr;

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const auto n = static_cast<std::size_t>(a.n_elements() * kernels::bytes_of(a.dtype));
  return std::memcmp(a.data, b.data, n) == 0;
}

TEST(ModelDirectory, a_written_model_is_read_back) {
  ModelConfig config = small_config();
  config.rope = {.type = RopeConfig::Type::Llama3,
                 .theta = 500000,
                 .factor = 8,
                 .original_max_seq_len = 64,
                 .low_freq_factor = 1,
                 .high_freq_factor = 4};
  config.eos_ids = {2, 5};
  const Folder dir;
  write_small_model(dir, config);
  const ModelFiles files = open_model(dir.path());
  EXPECT_EQ(files.config.dim, 64);
  EXPECT_EQ(files.config.n_kv_heads, 2);
  EXPECT_EQ(files.config.norm_eps, config.norm_eps);
  EXPECT_EQ(files.config.rope.type, RopeConfig::Type::Llama3);
  EXPECT_EQ(files.config.rope.theta, 500000);
  EXPECT_EQ(files.config.rope.original_max_seq_len, 64);
  EXPECT_EQ(files.config.eos_ids, config.eos_ids);
  EXPECT_EQ(files.config.n_params(), config.n_params());
  EXPECT_EQ(files.stored_dtype, kernels::DType::BF16);
  EXPECT_EQ(files.tokenizer->bos_id(), 1);
  EXPECT_THAT(files.notices, testing::IsEmpty());

  const auto source = random_tensors(config, 7);
  for (const TensorSpec& spec : tensors_of(config)) {
    const Tensor stored = files.tensors->read(spec.name);
    const std::vector<float> made = f32_of(source->read(spec.name));
    ASSERT_EQ(stored.shape, spec.shape);
    const auto* bits = static_cast<const std::uint16_t*>(stored.data);
    for (std::size_t i = 0; i < made.size(); i++) {
      ASSERT_EQ(bits[i], kernels::bf16_from_f32(made[i])) << spec.name << " " << i;
    }
  }
}

TEST(ModelDirectory, rewriting_changes_no_bit) {
  const Folder first, second;
  write_small_model(first);
  const ModelFiles files = open_model(first.path());
  write_model(second.path(), files.config, *files.tensors, files.stored_dtype, first.path());
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.model"}) {
    EXPECT_EQ(read_file(first / name), read_file(second / name)) << name;
  }
}

TEST(ModelDirectory, generation_config_replaces_the_end_of_sequence_ids) {
  const Folder dir;
  write_small_model(dir);
  write_file(dir / "generation_config.json", R"({"eos_token_id": [7, 9]})");
  EXPECT_EQ(open_model(dir.path()).config.eos_ids, (std::vector<TokenId>{7, 9}));
}

/// Encodes "the cat" with the small model's tokenizer and this tokenizer_config.json.
std::vector<TokenId> encoded_with(const std::string& tokenizer_config) {
  const Folder dir;
  write_small_model(dir);
  write_file(dir / "tokenizer_config.json", tokenizer_config);
  return open_model(dir.path()).tokenizer->encode("the cat");
}

TEST(ModelDirectory, add_bos_token_prepends_bos_to_the_prompt) {
  const std::vector<TokenId> plain =
      encoded_with(R"({"add_bos_token": false, "add_eos_token": false})");
  ASSERT_GT(plain.size(), 1u);
  EXPECT_NE(plain.front(), 1);
  std::vector<TokenId> expected = plain;
  expected.insert(expected.begin(), 1);
  EXPECT_EQ(encoded_with(R"({"add_bos_token": true, "add_eos_token": false})"), expected);
  // The file names the token to add.
  expected.front() = 2;
  EXPECT_EQ(encoded_with(R"({"add_bos_token": true, "bos_token": "</s>"})"), expected);
}

TEST(ModelDirectory, add_eos_token_appends_eos_to_the_prompt) {
  std::vector<TokenId> expected =
      encoded_with(R"({"add_bos_token": false, "add_eos_token": false})");
  ASSERT_NE(expected.back(), 2);
  expected.push_back(2);
  EXPECT_EQ(encoded_with(R"({"add_bos_token": false, "add_eos_token": true})"), expected);
  expected.insert(expected.begin(), 1);
  EXPECT_EQ(encoded_with(R"({"add_bos_token": true, "add_eos_token": true})"), expected);
}

TEST(ModelDirectory, the_card_names_the_draft_model) {
  const Folder dir;
  write_small_model(dir);
  write_file(dir / "decoscope.json", R"({"draft": "demo-draft", "other": [1]})");
  EXPECT_EQ(open_model(dir.path()).draft_name, "demo-draft");
}

TEST(ModelDirectory, the_card_names_the_model_before_consistency_training) {
  const Folder dir;
  write_small_model(dir);
  EXPECT_EQ(name_before_training(dir.path()), "");
  write_file(dir / "decoscope.json", R"({"before": "demo-target"})");
  EXPECT_EQ(name_before_training(dir.path()), "demo-target");
  EXPECT_EQ(open_model(dir.path()).draft_name, "");
  write_file(dir / "decoscope.json", R"({"before": "../demo-target"})");
  const std::string message = refusal([&] { name_before_training(dir.path()); });
  EXPECT_THAT(message, HasSubstr("before"));
}

TEST(ModelDirectory, every_kind_of_tokenizer_file_is_copied) {
  const Folder from, to;
  const std::vector<std::string> names = {"tokenizer.json", "tekken.json", "qwen.tiktoken"};
  for (const std::string& name : names) write_file(from / name, "content of " + name);
  write_file(from / "notes.txt", "");
  copy_tokenizer(from.path(), to.path());
  for (const std::string& name : names) EXPECT_EQ(read_file(to / name), "content of " + name);
  EXPECT_FALSE(std::filesystem::exists(to / "notes.txt"));
}

TEST(ModelDirectory, a_name_means_a_sibling_or_a_bundled_model) {
  const Folder dir;
  const std::string here = std::filesystem::canonical(dir.path()).string();
  const std::string family = here + "/family", assets = here + "/assets";
  for (const std::string& model : {family + "/a", family + "/b", assets + "/models/a",
                                   assets + "/models/b", assets + "/models/c"}) {
    std::filesystem::create_directories(model);
    write_file(model + "/config.json", "{}");
  }
  EXPECT_EQ(beside_or_named(family + "/a", "b", assets), family + "/b");
  EXPECT_EQ(beside_or_named(family + "/a/", "b", assets), family + "/b");
  EXPECT_EQ(beside_or_named(family + "/a", "c", assets), "c");
  EXPECT_EQ(beside_or_named(family + "/a", "", assets), "");
  EXPECT_EQ(beside_or_named(assets + "/models/a", "b", assets), "b")
      << "the name of a bundled model";
}

TEST(ModelDirectory, a_model_is_found_by_name_or_path) {
  const Folder assets;
  const Folder dir;
  write_small_model(dir);
  std::filesystem::create_directories(assets / "models");
  std::filesystem::copy(dir.path(), assets / "models/demo-target",
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(find_model("demo-target", assets.path()), assets / "models/demo-target");
  EXPECT_EQ(find_model(dir.path(), assets.path()), dir.path());
  std::filesystem::create_directories(assets / "folder");
  write_file(assets / "folder/m.gguf", "GGUF");
  EXPECT_EQ(find_model(assets / "folder", assets.path()), assets / "folder/m.gguf");
  const std::string message = refusal([&] { find_model("demo-tarjet", assets.path()); });
  EXPECT_THAT(message, HasSubstr("demo-tarjet"));
  EXPECT_THAT(message, HasSubstr("one of demo-target"));
}

TEST(RandomTensors, depend_only_on_seed_name_and_index) {
  const ModelConfig config = small_config();
  ModelConfig wider = config;
  wider.n_layers = 3;
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  const Tensor a = random_tensors(config, 5)->read(name);
  EXPECT_TRUE(same_bytes(a, random_tensors(wider, 5)->read(name)));
  EXPECT_FALSE(same_bytes(a, random_tensors(config, 6)->read(name)));
  EXPECT_FALSE(same_bytes(a, random_tensors(config, 5)->read("model.layers.0.mlp.up_proj.weight")));
  for (const float x : f32_of(random_tensors(config, 5)->read("model.norm.weight"))) {
    EXPECT_EQ(x, 1);
  }
}

// With 19,200 draws of z the standard errors are 1 / 139 (mean), 0.0102 (variance) and 0.07 (fourth
// moment). Allow five of each.
TEST(RandomTensors, are_normal_with_deviation_0_02) {
  const std::vector<float> values =
      f32_of(random_tensors(small_config(), 5)->read("model.embed_tokens.weight"));
  ASSERT_EQ(values.size(), 19200u);
  double sum = 0, squares = 0, fourth = 0;
  for (const float x : values) {
    const double z = x / 0.02;
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 5 / 139.0);
  EXPECT_NEAR(squares / n, 1, 5 * 0.0102);
  EXPECT_NEAR(fourth / n, 3, 5 * 0.07);
}

TEST(RandomTensors, quantiles_invert_the_distribution_function) {
  const NormalQuantiles quantile;
  for (std::uint32_t bits : {0u, 1u, 1000u, 1u << 20, 1u << 25, 1u << 31, 3u << 30, ~0u}) {
    const double p = (bits + 0.5) * 0x1p-32;
    const double x = NormalQuantiles::exact(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 1e-9) << p;
    EXPECT_NEAR(quantile(bits), x, 2e-3) << p;
  }
}

TEST(Scaled, original_weights_fill_the_corner_and_norms_halve) {
  const ModelConfig config = small_config();
  const auto source = random_tensors(config, 3);
  const ModelScale scale{.width = 4, .depth = 2};
  const ModelConfig big = scaled(config, scale);
  const auto tensors = scaled(source, config, scale);
  EXPECT_EQ(big.dim, 256);
  EXPECT_EQ(big.n_heads / big.n_kv_heads, config.n_heads / config.n_kv_heads);
  EXPECT_EQ(big.head_dim, config.head_dim);
  EXPECT_EQ(big.norm_eps, config.norm_eps / 4);
  EXPECT_EQ(big.n_layers, 4);
  for (const TensorSpec& spec : tensors_of(big))
    EXPECT_EQ(tensors->read(spec.name).shape, spec.shape);

  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  const std::vector<float> old = f32_of(source->read(q)), made = f32_of(tensors->read(q));
  for (std::size_t row = 0; row < 256; row++) {
    for (std::size_t col = 0; col < 256; col++) {
      const float expected = row < 64 && col < 64 ? old[row * 64 + col] : 0;
      ASSERT_EQ(made[row * 256 + col], expected) << row << " " << col;
    }
  }
  const std::vector<float> norm = f32_of(tensors->read("model.norm.weight"));
  EXPECT_EQ(norm[63], 0.5f);
  for (const char* name :
       {"model.layers.2.self_attn.o_proj.weight", "model.layers.3.mlp.down_proj.weight"}) {
    for (const float x : f32_of(tensors->read(name))) ASSERT_EQ(x, 0);
  }
}

TEST(Scaled, scales_are_read_back_as_written) {
  EXPECT_EQ(scale_from("4x2"), (ModelScale{4, 2}));
  EXPECT_EQ(name_of(scale_from("16x1")), "16x1");
  for (const char* text :
       {"", "4", "x", "2x1", "8x2", "4x0", "4x-1", "0x1", "4x2 ", "999999999999x1"}) {
    EXPECT_THROW(scale_from(text), Error) << text;
  }
}

TEST(Tokenizer, decode_inverts_encode) {
  const Folder dir;
  write_file(dir / "tokenizer.model", small_sentencepiece());
  const auto tokenizer = open_sentencepiece(dir / "tokenizer.model", {});
  EXPECT_EQ(tokenizer->encode("the cats")[0], 1);
  for (const std::string text : {"the cats", " the  cat\n\n cat ", "", "\n", "<s>",
                                 "h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x99\x82 z"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false)), text);
  }
  EXPECT_EQ(tokenizer->encode("<s>", false).size(), 3u);  // text, not the token
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(0));
  EXPECT_EQ(tokenizer->piece(1), "<s>");
  EXPECT_EQ(tokenizer->piece(3 + 0xe2), "\xE2");
  EXPECT_EQ(tokenizer->piece(-1), "");
  EXPECT_EQ(tokenizer->piece(100000), "");
}

TEST(TextStream, emits_whole_characters_and_equals_decode) {
  const Folder dir;
  write_file(dir / "tokenizer.model", small_sentencepiece());
  const auto tokenizer = open_sentencepiece(dir / "tokenizer.model", {});
  const std::vector<TokenId> ids = tokenizer->encode("the \xE2\x82\xAC cats\n");
  TextStream stream(*tokenizer, {});
  std::string text;
  for (const TokenId id : ids) {
    const std::string more = stream.push(std::span(&id, 1));
    EXPECT_EQ(more.find("\xEF\xBF\xBD"), std::string::npos);
    text += more;
  }
  text += stream.finish();
  EXPECT_EQ(text, "the \xE2\x82\xAC cats\n");
}

}  // namespace
}  // namespace engine::test
