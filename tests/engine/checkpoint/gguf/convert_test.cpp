// Conversion of models: a GGUF file written here equals llama.cpp's tensor by tensor, and a model
// converted there and back has the same bits.
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/text.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/gguf/convert.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/checkpoint/gguf/gguf_names.h"
#include "engine/checkpoint/gguf/tokenizer_from_gguf.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/tokenizer/bpe/byte_symbols.h"
#include "engine/tokenizer/sentencepiece.h"
#include "tests/support/files.h"
#include "tests/support/models/gguf_bytes.h"
#include "tests/support/models/gguf_fixtures.h"
#include "tests/support/models/model_files.h"
#include "tests/support/refusal.h"

namespace engine::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

// Returns the notices.
std::vector<std::string> to_gguf(const std::string& from,
                                 const std::string& to,
                                 std::optional<GgmlType> type = {}) {
  std::vector<std::string> notices;
  write_gguf(open_without_tokenizer(from), to, type, {}, notices);
  return notices;
}

void to_directory(const std::string& from, const std::string& to) {
  std::vector<std::string> notices;
  write_directory(open_without_tokenizer(from), to, {}, {}, notices);
}

std::map<std::string, const GgufTensor*> by_name(const GgufFile& file) {
  std::map<std::string, const GgufTensor*> tensors;
  for (const GgufTensor& tensor : file.tensors()) tensors[tensor.name] = &tensor;
  return tensors;
}

void expect_same_tensors(const std::string& path, const std::string& other) {
  const auto a = GgufFile::open(path), b = GgufFile::open(other);
  const auto found = by_name(*a), expected = by_name(*b);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(found.at(name)->shape, tensor->shape) << name;
    EXPECT_STREQ(found.at(name)->type->name, tensor->type->name) << name;
    if (name.starts_with("rope_freqs")) continue;  // rounded otherwise
    EXPECT_TRUE(found.at(name)->bytes == tensor->bytes) << name;
  }
}

class Convert : public testing::TestWithParam<std::string> {
 protected:
  std::string fixture() const { return kGgufFixtures + "/" + GetParam(); }
};

TEST_P(Convert, writes_the_tensors_of_llama_cpp) {
  const Folder dir;
  to_gguf(fixture(), dir / "out.gguf");
  expect_same_tensors(dir / "out.gguf", fixture() + "/model.gguf");
}

TEST_P(Convert, writes_the_numbers_of_llama_cpp) {
  const Folder dir;
  to_gguf(fixture(), dir / "out.gguf");
  const auto ours = GgufFile::open(dir / "out.gguf"),
             file = GgufFile::open(fixture() + "/model.gguf");
  for (const GgufEntry& entry : file->entries()) {
    const bool is_about_file = entry.key.starts_with("general.");
    // rope.scaling.finetuned has no effect.
    if (is_about_file || entry.key.ends_with("rope.scaling.finetuned")) continue;
    const GgufEntry* own = ours->find(entry.key);
    ASSERT_NE(own, nullptr) << entry.key;
    EXPECT_EQ(own->type, entry.type) << entry.key;
    EXPECT_TRUE(own->bytes == entry.bytes) << entry.key;
  }
}

TEST_P(Convert, there_and_back_gives_the_same_bits) {
  const Folder dir;
  to_gguf(fixture(), dir / "out.gguf");
  to_directory(dir / "out.gguf", dir / "back");
  const auto before = SafetensorsFile::open(fixture() + "/model.safetensors");
  const auto after = SafetensorsFile::open(dir / "back/model.safetensors");
  const bool has_offset = open_without_tokenizer(fixture()).config.norm_offset != 0;
  for (const TensorEntry& entry : after->entries()) {
    const Tensor a = before->read(entry.name), b = after->read(entry.name);
    if (has_offset && entry.name.ends_with("norm.weight")) continue;
    EXPECT_EQ(a.dtype, b.dtype) << entry.name;
    EXPECT_EQ(f32_of(a), f32_of(b)) << entry.name;
  }
}

TEST_P(Convert, back_and_there_gives_the_same_file) {
  const Folder dir;
  to_directory(fixture() + "/model.gguf", dir / "model");
  to_gguf(dir / "model", dir / "out.gguf");
  expect_same_tensors(dir / "out.gguf", fixture() + "/model.gguf");
}

INSTANTIATE_TEST_SUITE_P(models,
                         Convert,
                         testing::ValuesIn(gguf_fixture_names()),
                         [](const auto& name) { return name.param; });

TEST(ConvertTypes, matrices_get_the_type_and_vectors_stay_f32) {
  const Folder dir;
  ModelConfig config = small_config();
  write_small_model(dir, config);
  for (const GgmlType type : writable_ggml_types()) {
    const std::string out = dir / (std::string("out-") + name_of(type) + ".gguf");
    to_gguf(dir.path(), out, type);
    const ModelFiles files = open_without_tokenizer(dir.path());
    const auto file = GgufFile::open(out);
    const auto tensors = by_name(*file);
    for (const TensorSpec& spec : tensors_of(files.config)) {
      const GgufPlace place = place_in_gguf(spec.name, files.config);
      const GgufTensor& tensor = *tensors.at(place.name);
      const GgmlType expected = spec.shape.size() > 1 ? type : GgmlType::F32;
      ASSERT_STREQ(tensor.type->name, name_of(expected)) << spec.name;
      if (place.n_interleaved_heads > 0) continue;
      std::string bytes;
      quantise(expected, f32_of(files.tensors->read(spec.name)), bytes);
      EXPECT_TRUE(tensor.bytes == bytes) << spec.name;
    }
    fs::remove(out);
  }
}

TEST(ConvertTypes, rows_that_are_no_whole_blocks_become_f16) {
  for (const char* from : {"/qwen3", "/qwen3/model.gguf"}) {
    const Folder dir;
    const std::vector<std::string> notices =
        to_gguf(kGgufFixtures + from, dir / "out.gguf", GgmlType::Q8_0);
    const auto file = GgufFile::open(dir / "out.gguf");
    EXPECT_STREQ(by_name(*file).at("token_embd.weight")->type->name, "F16");
    EXPECT_STREQ(by_name(*file).at("blk.0.attn_output.weight")->type->name, "Q8_0");
    ASSERT_FALSE(notices.empty()) << from;
    EXPECT_THAT(notices[0], HasSubstr(".weight: F16, because"));
  }
}

TEST(ConvertTypes, a_gguf_file_gets_another_type) {
  const Folder dir;
  write_small_model(dir, small_config());
  to_gguf(dir.path(), dir / "f32.gguf", GgmlType::F32);
  to_gguf(dir.path(), dir / "direct.gguf", GgmlType::Q4_1);
  to_gguf(dir / "f32.gguf", dir / "twice.gguf", GgmlType::Q4_1);
  expect_same_tensors(dir / "twice.gguf", dir / "direct.gguf");
  to_gguf(dir / "twice.gguf", dir / "copy.gguf");
  expect_same_tensors(dir / "copy.gguf", dir / "direct.gguf");
}

TEST(ConvertTypes, quantised_weights_become_f32_in_a_directory) {
  const Folder dir;
  write_small_model(dir, small_config());
  to_gguf(dir.path(), dir / "q.gguf", GgmlType::Q4_0);
  to_directory(dir / "q.gguf", dir / "back");
  const ModelFiles quantised = open_without_tokenizer(dir / "q.gguf"),
                   back = open_without_tokenizer(dir / "back");
  EXPECT_EQ(quantised.stored_type, "Q4_0");
  EXPECT_EQ(quantised.stored_dtype, kernels::DType::BF16);
  EXPECT_EQ(back.stored_dtype, kernels::DType::F32);
  for (const TensorSpec& spec : tensors_of(back.config))
    EXPECT_EQ(f32_of(quantised.tensors->read(spec.name)), f32_of(back.tensors->read(spec.name)));
}

TEST(ConvertTypes, a_cancelled_conversion_leaves_no_file) {
  const Folder dir;
  write_small_model(dir, small_config());
  const Folder out;
  std::vector<std::string> notices;
  const auto cancel = [](std::int64_t done, std::int64_t) { return done < 50'000; };
  EXPECT_THAT(refusal(
                  [&] {
                    write_gguf(open_without_tokenizer(dir.path()), out / "x.gguf", {}, cancel,
                               notices);
                  },
                  ErrorCode::Cancelled),
              HasSubstr("cancelled"));
  EXPECT_TRUE(fs::is_empty(out.path()));
}

// A change of a small LLaMA model, by name.
using Change = std::pair<const char*, void (*)(ModelConfig&)>;
class ConvertConfig : public testing::TestWithParam<Change> {};

TEST_P(ConvertConfig, is_kept) {
  const Folder dir;
  ModelConfig config = small_config();
  GetParam().second(config);
  write_small_model(dir, config);
  to_gguf(dir.path(), dir / "out.gguf");
  const ModelFiles before = open_without_tokenizer(dir.path()),
                   after = open_without_tokenizer(dir / "out.gguf");
  EXPECT_EQ(config_json(after.config, kernels::DType::BF16),
            config_json(before.config, kernels::DType::BF16));
  EXPECT_EQ(after.config.max_seq_len, before.config.max_seq_len);
  for (int layer = 0; layer < before.config.n_layers; layer++)
    EXPECT_EQ(after.config.window_of(layer), before.config.window_of(layer));
}

INSTANTIATE_TEST_SUITE_P(
    changes,
    ConvertConfig,
    testing::Values(
        Change("window_of_mistral",
               [](ModelConfig& c) {
                 c.model_type = "mistral";
                 c.sliding_window = 16;
               }),
        Change("window_of_some_layers",
               [](ModelConfig& c) {
                 c.model_type = "qwen2";
                 c.qkv_bias = true;
                 c.sliding_window = 16;
                 c.layer_kinds = global_then_local(1, c.n_layers);
               }),
        Change("linear",
               [](ModelConfig& c) {
                 c.rope.type = RopeConfig::Type::Linear;
                 c.rope.factor = 4;
               }),
        Change("yarn",
               [](ModelConfig& c) {
                 c.rope.type = RopeConfig::Type::Yarn;
                 c.rope.factor = 4;
                 c.rope.original_max_seq_len = 32;
                 c.rope.beta_fast = 16;
               }),
        Change("llama3",
               [](ModelConfig& c) {
                 c.rope.type = RopeConfig::Type::Llama3;
                 c.rope.factor = 8;
                 c.rope.theta = 5e5;
                 c.rope.original_max_seq_len = 8192;
               }),
        Change("longrope",
               [](ModelConfig& c) {
                 c.rope.type = RopeConfig::Type::Longrope;
                 c.rope.original_max_seq_len = c.max_seq_len / 2;
                 c.rope.factor = 2;
                 c.rope.short_factor.assign(static_cast<std::size_t>(c.head_dim) / 2, 1.25);
                 c.rope.long_factor.assign(static_cast<std::size_t>(c.head_dim) / 2, 2.5);
               }),
        Change("heads_of_another_size", [](ModelConfig& c) { c.head_dim *= 2; }),
        Change("biases", [](ModelConfig& c) { c.qkv_bias = c.attn_out_bias = c.mlp_bias = true; })),
    [](const auto& change) { return std::string(change.param.first); });

TEST(ConvertTypes, what_gguf_cannot_describe_is_refused) {
  const Folder dir;
  ModelConfig config = small_config();
  config.rope.type = RopeConfig::Type::Dynamic;
  config.rope.factor = 2;
  config.rope.original_max_seq_len = config.max_seq_len;
  write_small_model(dir, config);
  EXPECT_THAT(refusal([&] { to_gguf(dir.path(), dir / "x.gguf"); }), HasSubstr("found dynamic"));
}

// ---- tokenizers

const std::vector<std::string> kTexts = {"the cat sat",
                                         " the  cat",
                                         "h\xC3\xA9t\n\ncat",
                                         "123 the45",
                                         "\xF0\x9F\x90\x88</s><|end|>the",
                                         ""};

void expect_same_tokens(const Tokenizer& found, const Tokenizer& expected) {
  for (const std::string& text : kTexts) {
    for (const bool symbols : {false, true}) {
      const TextReading reading{.symbols = symbols};
      EXPECT_EQ(found.encode(text, reading), expected.encode(text, reading)) << text;
    }
  }
  EXPECT_EQ(found.bos_id(), expected.bos_id());
  EXPECT_EQ(found.eos_id(), expected.eos_id());
}

// Converts a directory there and back and compares the tokens.
void expect_tokens_kept(const Folder& dir) {
  const Folder out;
  to_gguf(dir.path(), out / "m.gguf");
  to_directory(out / "m.gguf", out / "back");
  const ModelFiles first = open_without_tokenizer(dir.path()),
                   gguf = open_without_tokenizer(out / "m.gguf"),
                   back = open_without_tokenizer(out / "back");
  expect_same_tokens(*gguf.tokenizer, *first.tokenizer);
  expect_same_tokens(*back.tokenizer, *first.tokenizer);
  EXPECT_EQ(gguf.chat_template, first.chat_template);
  EXPECT_EQ(back.chat_template, first.chat_template);
  EXPECT_EQ(gguf.config.eos_ids, first.config.eos_ids);
  EXPECT_EQ(back.config.eos_ids, first.config.eos_ids);
}

ModelConfig config_with_ids() {
  ModelConfig config = small_config();
  config.bos_id = 1;
  config.eos_ids = {2};
  return config;
}

TEST(ConvertTokenizers, sentencepiece_keeps_its_tokens) {
  const Folder dir;
  write_small_model(dir, config_with_ids());
  write_file(dir / "chat_template.jinja", "{{ messages[0]['content'] }}");
  expect_tokens_kept(dir);
}

// Ids 0 to 2 are symbols, then 256 bytes, then merges.
std::string byte_level_json() {
  std::string vocabulary;
  const std::vector<std::string> symbols = {"<unk>", "<s>", "</s>"};
  int id = 0;
  const auto add = [&](const std::string& text) {
    vocabulary += fmt::format("{}{}: {}", id == 0 ? "" : ", ", json_quoted(text), id);
    id++;
  };
  for (const std::string& symbol : symbols) add(symbol);
  for (int byte = 0; byte < 256; byte++) {
    std::string text;
    append_byte_symbols(text, std::string(1, static_cast<char>(byte)));
    add(text);
  }
  for (const char* text : {"th", "the", "\xC4\xA0the", "ca", "cat"}) add(text);
  const auto added = [](int at, const char* text) {
    return fmt::format(
        R"({{"id": {}, "content": "{}", "single_word": false, "lstrip": false, "rstrip": false, )"
        R"("normalized": false, "special": true}})",
        at, text);
  };
  return fmt::format(
      R"({{"version": "1.0", "added_tokens": [{}, {}, {}, {}], "normalizer": null, )"
      R"("pre_tokenizer": {{"type": "Sequence", "pretokenizers": [)"
      R"({{"type": "Digits", "individual_digits": true}}, {{"type": "ByteLevel", )"
      R"("add_prefix_space": false, "trim_offsets": true, "use_regex": true}}]}}, )"
      R"("post_processor": null, "decoder": {{"type": "ByteLevel"}}, )"
      R"("model": {{"type": "BPE", "vocab": {{{}}}, "merges": ["t h", "th e", "\u0120 the", )"
      R"(["c", "a"], "ca t"]}}}})",
      added(0, "<unk>"), added(1, "<s>"), added(2, "</s>"), added(264, "<|end|>"), vocabulary);
}

TEST(ConvertTokenizers, byte_level_keeps_its_tokens) {
  const Folder dir;
  write_small_model(dir, config_with_ids());
  fs::remove(dir / "tokenizer.model");
  write_file(dir / "tokenizer.json", byte_level_json());
  write_file(dir / "tokenizer_config.json",
             R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", )"
             R"("eos_token": "</s>", "chat_template": "{{ messages }}"})");
  expect_tokens_kept(dir);
  const Folder out;
  to_gguf(dir.path(), out / "m.gguf");
  const auto file = GgufFile::open(out / "m.gguf");
  EXPECT_EQ(file->string("tokenizer.ggml.pre"), "smollm");
  EXPECT_EQ(file->strings("tokenizer.ggml.merges").size(), 5U);
  EXPECT_EQ(file->integers("tokenizer.ggml.token_type").at(264), 3);
  EXPECT_EQ(file->strings("tokenizer.ggml.tokens").size(), 300U);
}

// Gemma's files call <unk> a control symbol; SentencePiece needs an unknown piece.
TEST(ConvertTokenizers, the_unknown_piece_may_be_a_control_symbol) {
  std::vector<std::string> texts = {"<pad>", "<eos>", "<bos>", "<unk>"};
  std::vector<float> scores(4, -1000);
  std::vector<std::int32_t> types(4, 3);
  for (const char* text : {"\xE2\x96\x81", "a", "b", "ab"}) {
    texts.emplace_back(text);
    scores.push_back(-static_cast<float>(texts.size()));
    types.push_back(1);
  }
  GgufBytes bytes;
  bytes.text("general.architecture", "gemma3").text("tokenizer.ggml.model", "llama");
  bytes.texts("tokenizer.ggml.tokens", texts).f32s("tokenizer.ggml.scores", scores);
  bytes.i32s("tokenizer.ggml.token_type", types).u32("tokenizer.ggml.unknown_token_id", 3);
  bytes.u32("tokenizer.ggml.bos_token_id", 2).u32("tokenizer.ggml.eos_token_id", 1);
  bytes.boolean("tokenizer.ggml.add_space_prefix", false);
  const Folder dir;
  write_file(dir / "v.gguf", bytes.bytes());
  std::vector<std::string> notices;
  tokenizer_from_gguf(*GgufFile::open(dir / "v.gguf"), dir.path(), notices);
  const auto tokenizer = open_tokenizer(dir.path(), {}, notices);
  EXPECT_EQ(tokenizer->encode("ab a"), (std::vector<TokenId>{2, 7, 4, 5}));
  EXPECT_EQ(tokenizer->eos_id(), 1);
}

TEST(ConvertTokenizers, patterns_without_a_name_are_refused) {
  const Folder dir;
  write_small_model(dir, config_with_ids());
  fs::remove(dir / "tokenizer.model");
  write_file(dir / "tokenizer.json",
             replaced(byte_level_json(), R"({"type": "Digits", "individual_digits": true})",
                      R"({"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Isolated", )"
                      R"("invert": false})"));
  EXPECT_THAT(refusal([&] { to_gguf(dir.path(), dir / "x.gguf"); }),
              HasSubstr("tokenizer.json: pre_tokenizer"));
}

TEST(ConvertTokenizers, other_kinds_of_a_gguf_file_are_left_out_with_a_notice) {
  const Folder dir;
  std::vector<std::string> notices;
  write_directory(open_without_tokenizer(kGgufFixtures + "/qwen3/model.gguf"), dir / "out", {}, {},
                  notices);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_THAT(notices[0], HasSubstr("the directory has no tokenizer"));
}

}  // namespace
}  // namespace engine::test
