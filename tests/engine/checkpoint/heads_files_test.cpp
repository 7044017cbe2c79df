// Directories of draft heads are read back as written, and refused with one fault at a time.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/shared/target_output.h"
#include "tests/support/models/model_files.h"
#include "tests/support/models/random_models.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

HeadsConfig config_of(HeadsKind kind) {
  HeadsConfig config;
  config.kind = kind;
  config.base = "target";
  config.n_heads = 3;
  config.dim = 16;
  config.vocab_size = 40;
  config.hidden_dim = 24;
  config.n_attention_heads = 4;
  return config;
}

ModelFiles target_of(int dim = 16, int vocab_size = 40) {
  ModelFiles files;
  files.path = files.name = "target";
  files.config.dim = dim;
  files.config.vocab_size = vocab_size;
  return files;
}

// Valid heads; each test changes one thing.
class HeadsDirectory : public testing::TestWithParam<HeadsKind> {
 protected:
  HeadsDirectory() { write(config_of(GetParam())); }
  void write(const HeadsConfig& config) {
    write_heads(dir_.path(), config, *random_heads(config, 3), kernels::DType::BF16);
    good_ = read_file(dir_ / "config.json");
  }
  std::string refused(const std::string& config, const ModelFiles& target = target_of()) const {
    write_file(dir_ / "config.json", config);
    const std::string message = refusal([&] { open_heads(dir_.path(), &target); });
    EXPECT_THAT(message,
                AllOf(HasSubstr(dir_.path()), HasSubstr("found "), HasSubstr("expected ")));
    return message;
  }
  /// config.json with another value of a field.
  std::string with(const std::string& field, const std::string& value) const {
    const std::size_t begin = good_.find("\"" + field + "\": ");
    EXPECT_NE(begin, std::string::npos) << field;
    const std::size_t from = begin + field.size() + 4, to = good_.find_first_of(",\n", from);
    return good_.substr(0, from) + value + good_.substr(to);
  }
  std::string count_field() const { return std::string(name_of(GetParam())) + "_num_heads"; }

  Folder dir_;
  std::string good_;
};

TEST_P(HeadsDirectory, is_read_back_as_written) {
  const ModelFiles target = target_of();
  const HeadsFiles files = open_heads(dir_.path(), &target);
  const HeadsConfig expected = config_of(GetParam());
  EXPECT_EQ(heads_kind(dir_.path()), GetParam());
  EXPECT_EQ(files.config.kind, expected.kind);
  EXPECT_EQ(files.config.base, "target");
  EXPECT_EQ(files.config.n_heads, 3);
  EXPECT_EQ(files.config.dim, 16);
  EXPECT_EQ(files.config.vocab_size, 40);
  EXPECT_EQ(files.stored_dtype, kernels::DType::BF16);
  EXPECT_THAT(files.notices, IsEmpty());
  if (GetParam() == HeadsKind::Chimera) {
    EXPECT_EQ(files.config.gram, 3);
    EXPECT_TRUE(files.config.residual);
    EXPECT_FALSE(files.config.own_embedding);
    EXPECT_TRUE(files.config.sees_committed_grams);
    EXPECT_EQ(files.config.hidden_dim, 24);
    EXPECT_EQ(files.config.n_attention_heads, 4);
    EXPECT_EQ(files.config.norm_eps, expected.norm_eps);
    EXPECT_EQ(files.config.rope_theta, 10000);
  }
  std::int64_t n = 0;
  for (const TensorSpec& spec : tensors_of(files.config))
    n += files.tensors->read(spec.name).n_elements();
  EXPECT_EQ(n, expected.n_params());
}

TEST_P(HeadsDirectory, an_invalid_field_is_named) {
  for (const char* value : {"0", "-1", "1.5", "\"3\"", "65", "9999999999999", "null", "[]"}) {
    EXPECT_THAT(refused(with(count_field(), value)), HasSubstr(count_field())) << value;
    if (value == std::string("null")) continue;  // omitted: the target's value
    EXPECT_THAT(refused(with("hidden_size", value)), HasSubstr("hidden_size")) << value;
  }
  EXPECT_THAT(refused(with("model_type", "\"llama\"")), HasSubstr("medusa or chimera"));
  EXPECT_THAT(refused("{}"), HasSubstr("model_type"));
  EXPECT_THAT(refused("[1]"), HasSubstr("an object"));
  EXPECT_THAT(refused(good_.substr(0, good_.size() / 2)), HasSubstr("config.json"));
}

TEST_P(HeadsDirectory, heads_of_another_model_are_refused_with_both_sizes) {
  EXPECT_THAT(refused(good_, target_of(32)),
              AllOf(HasSubstr("hidden_size"), HasSubstr("found 16"), HasSubstr("32")));
  EXPECT_THAT(refused(good_, target_of(16, 41)),
              AllOf(HasSubstr("vocab_size"), HasSubstr("found 40"), HasSubstr("41")));
  // Without a target any size that matches the heads' own tensors is accepted.
  write_file(dir_ / "config.json", good_);
  EXPECT_NO_THROW(open_heads(dir_.path(), nullptr));
  EXPECT_THAT(refused(with("hidden_size", "32"), target_of(32)),
              AllOf(HasSubstr("tensor"), HasSubstr("32")));
}

TEST_P(HeadsDirectory, a_missing_or_misshapen_tensor_is_named) {
  EXPECT_THAT(refused(with(count_field(), "4")), AllOf(HasSubstr("tensor"), HasSubstr("none")));
  HeadsConfig other = config_of(GetParam());
  other.n_heads = 2;
  write_heads(dir_.path(), other, *random_heads(other, 3), kernels::DType::F32);
  EXPECT_THAT(refused(good_), HasSubstr("for 3 heads"));
  // A surplus head is ignored with a notice.
  other.n_heads = 4;
  write_heads(dir_.path(), other, *random_heads(other, 3), kernels::DType::F32);
  write_file(dir_ / "config.json", good_);
  const HeadsFiles files = open_heads(dir_.path(), nullptr);
  ASSERT_EQ(files.notices.size(), 1u);
  EXPECT_THAT(files.notices[0], HasSubstr("ignored"));
  EXPECT_EQ(files.stored_dtype, kernels::DType::F32);
}

TEST_P(HeadsDirectory, a_truncated_file_is_refused) {
  const std::string whole = read_file(dir_ / "model.safetensors");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    write_file(dir_ / "model.safetensors", whole.substr(0, size));
    refusal([&] { open_heads(dir_.path(), nullptr); });
  }
  std::filesystem::remove(dir_ / "model.safetensors");
  EXPECT_THROW(open_heads(dir_.path(), nullptr), Error);
  std::filesystem::remove(dir_ / "config.json");
  EXPECT_THAT(refusal([&] { open_heads(dir_.path(), nullptr); }), HasSubstr("no config.json"));
  EXPECT_FALSE(heads_kind(dir_.path()));
}

INSTANTIATE_TEST_SUITE_P(Of,
                         HeadsDirectory,
                         testing::Values(HeadsKind::Medusa, HeadsKind::Chimera),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

// Fields of Chimera's encoder.
class EncoderFields : public HeadsDirectory {};

// Heads that end in the target's output matrix and rank some tokens.
class HeadsOnTarget : public HeadsDirectory {
 protected:
  HeadsOnTarget() {
    config_.target_output = true;
    config_.output_tokens = {0, 3, 4, 17, 39};
    if (GetParam() == HeadsKind::Chimera) config_.head_hidden_dim = 8;
    write(config_);
  }
  /// A target with a matrix of ascending numbers.
  static ModelFiles target() {
    ModelFiles files = target_of();
    const auto tensors = std::make_shared<MemoryTensors>();
    MemoryTensors::Entry& output = tensors->entries["lm_head.weight"];
    output.shape = {40, 16};
    for (int i = 0; i < 40 * 16; i++) output.data.push_back(static_cast<float>(i));
    files.config.tied_embeddings = false;
    files.tensors = tensors;
    return files;
  }
  std::string refused_tokens(std::vector<TokenId> tokens) {
    config_.output_tokens = std::move(tokens);
    write(config_);
    return refused(good_);
  }
  HeadsConfig config_ = config_of(GetParam());
};

TEST_P(HeadsOnTarget, are_read_back_with_rows_of_the_target) {
  const ModelFiles target = HeadsOnTarget::target();
  const HeadsFiles files = open_heads(dir_.path(), &target);
  EXPECT_TRUE(files.config.target_output);
  EXPECT_EQ(files.config.output_tokens, config_.output_tokens);
  EXPECT_EQ(files.config.n_outputs(), 5);
  EXPECT_EQ(files.config.head_hidden_dim, config_.head_hidden_dim);
  EXPECT_THAT(files.notices, IsEmpty());
  const std::vector<float> rows = f32_of(files.tensors->read(kTargetOutput));
  ASSERT_EQ(rows.size(), 5u * 16);
  for (std::size_t i = 0; i < rows.size(); i++)
    EXPECT_EQ(rows[i],
              static_cast<float>(config_.output_tokens[i / 16] * 16) + static_cast<float>(i % 16));
  EXPECT_EQ(files.tensors->stored(kOutputTokens).bytes.size(), 20u);
  EXPECT_FALSE(open_heads(dir_.path(), nullptr).tensors->has(kTargetOutput));
  config_.output_tokens.clear();
  write(config_);
  EXPECT_EQ(open_heads(dir_.path(), &target).config.n_outputs(), 40);
}

TEST_P(HeadsOnTarget, invalid_output_tokens_are_refused) {
  EXPECT_THAT(refused_tokens({3, 3}), AllOf(HasSubstr("element 1"), HasSubstr("found 3")));
  EXPECT_THAT(refused_tokens({4, 3}), AllOf(HasSubstr("element 1"), HasSubstr("ascending")));
  EXPECT_THAT(refused_tokens({-1, 3}), AllOf(HasSubstr("element 0"), HasSubstr("found -1")));
  EXPECT_THAT(refused_tokens({3, 40}), AllOf(HasSubstr("found 40"), HasSubstr("39")));
  EXPECT_THAT(refused_tokens(std::vector<TokenId>(41)), HasSubstr("[41]"));
}

TEST_P(HeadsOnTarget, outputs_of_another_kind_are_refused) {
  EXPECT_THAT(refused(with("output", "\"both\"")), HasSubstr("own or target"));
  EXPECT_THAT(refused(with("output", "\"own\"")), HasSubstr("output_tokens"));
  if (GetParam() == HeadsKind::Chimera) {
    EXPECT_THAT(refused(with("head_intermediate_size", "0")), HasSubstr("head_intermediate_size"));
  }
  // Output matrices of the heads' own beside "output": "target".
  const std::string on_target = good_;
  write(config_of(GetParam()));
  EXPECT_THAT(refused(on_target), AllOf(HasSubstr("[40, "), HasSubstr("no output matrix")));
}

TEST_P(HeadsOnTarget, a_float_tensor_of_tokens_is_refused) {
  std::string file = read_file(dir_ / "model.safetensors");
  const std::size_t at = file.find("\"I32\"");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 5, "\"F32\"");
  write_file(dir_ / "model.safetensors", file);
  EXPECT_THAT(refused(good_), AllOf(HasSubstr("output_tokens"), HasSubstr("I32")));
}

INSTANTIATE_TEST_SUITE_P(Of,
                         HeadsOnTarget,
                         testing::Values(HeadsKind::Medusa, HeadsKind::Chimera),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST_P(EncoderFields, invalid_fields_are_named) {
  const std::pair<const char*, const char*> cases[] = {{"gram", "0"},
                                                       {"gram", "6"},
                                                       {"residual", "1"},
                                                       {"sees_committed_grams", "2"},
                                                       {"first_layer", "\"hot\""},
                                                       {"num_attention_heads", "3"},
                                                       {"num_attention_heads", "16"},
                                                       {"rms_norm_eps", "0"},
                                                       {"intermediate_size", "-3"},
                                                       {"rope_theta", "\"x\""}};
  for (const auto& [field, value] : cases)
    EXPECT_THAT(refused(with(field, value)), HasSubstr(field)) << value;
  // Another gram size needs another first matrix; a fine-tuned first layer has its own embedding.
  EXPECT_THAT(refused(with("gram", "2")),
              AllOf(HasSubstr("gram.0.weight"), HasSubstr("[16, 48]"), HasSubstr("[16, 32]")));
  EXPECT_THAT(refused(with("first_layer", "\"finetuned\"")), HasSubstr("embed_tokens.weight"));
  EXPECT_THAT(refused(with("residual", "false")),
              AllOf(HasSubstr("heads.0.weight"), HasSubstr("[40, 32]"), HasSubstr("[40, 16]")));
}

TEST_P(EncoderFields, sees_committed_grams_defaults_to_false) {
  HeadsConfig config = config_of(HeadsKind::Chimera);
  config.sees_committed_grams = false;
  write(config);
  EXPECT_FALSE(open_heads(dir_.path(), nullptr).config.sees_committed_grams);
  const std::string line = "  \"sees_committed_grams\": false,\n";
  const std::size_t at = good_.find(line);
  ASSERT_NE(at, std::string::npos);
  write_file(dir_ / "config.json", good_.substr(0, at) + good_.substr(at + line.size()));
  EXPECT_FALSE(open_heads(dir_.path(), nullptr).config.sees_committed_grams);
}

INSTANTIATE_TEST_SUITE_P(Of, EncoderFields, testing::Values(HeadsKind::Chimera), [](const auto&) {
  return std::string("chimera");
});

TEST(HeadsOfCard, a_card_holds_names_but_no_paths) {
  const Folder dir;
  EXPECT_EQ(heads_of_card(dir.path(), HeadsKind::Medusa), "");
  write_file(dir / "decoscope.json", R"({"draft": "d", "medusa": "demo-medusa"})");
  EXPECT_EQ(heads_of_card(dir.path(), HeadsKind::Medusa), "demo-medusa");
  EXPECT_EQ(heads_of_card(dir.path(), HeadsKind::Chimera), "");
  for (const char* name : {"../x", "", "a/b"}) {
    write_file(dir / "decoscope.json", fmt::format(R"({{"chimera": "{}"}})", name));
    EXPECT_THAT(refusal([&] { heads_of_card(dir.path(), HeadsKind::Chimera); }),
                HasSubstr("chimera"));
  }
}

TEST(Heads, heads_naming_another_model_load_with_a_notice) {
  const Folder dir;
  HeadsConfig config = config_of(HeadsKind::Medusa);
  config.base = "somewhere/else";
  write_heads(dir.path(), config, *random_heads(config, 3), kernels::DType::BF16);
  const ModelFiles target = target_of();
  const HeadsFiles files = open_heads(dir.path(), &target);
  ASSERT_EQ(files.notices.size(), 1u);
  EXPECT_THAT(files.notices[0], AllOf(HasSubstr("somewhere/else"), HasSubstr("target")));
}

}  // namespace
}  // namespace engine::test
