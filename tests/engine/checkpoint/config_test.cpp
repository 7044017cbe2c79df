// Cases CF01 to CF25 (model directories), and the spellings of transformers 4 and 5.
#include <unistd.h>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/model_files.h"
#include "tests/support/models/model_files.h"

namespace engine::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// A valid model; each test changes one line of config.json.
class Config : public testing::Test {
 protected:
  Config() {
    write_small_model(dir_);
    good_ = read_file(dir_ / "config.json");
  }

  /// config.json with another value of a field, or without the field if `value` is empty.
  std::string with(const std::string& field, const std::string& value) const {
    const std::size_t begin = good_.find("  \"" + field + "\"");
    EXPECT_NE(begin, std::string::npos) << field;
    const std::size_t end = good_.find('\n', begin);
    const std::string line = value.empty() ? "" : fmt::format("  \"{}\": {},", field, value);
    return good_.substr(0, begin) + line + good_.substr(end);
  }
  /// config.json with a further field.
  std::string and_also(const std::string& member) const {
    return replaced(good_, "{", "{" + member + ",");
  }

  ModelFiles open(const std::string& config, const OpenOptions& options = {}) const {
    write_file(dir_ / "config.json", config);
    return open_model(dir_.path(), options);
  }
  std::string refused(const std::string& config) const {
    const std::string message = refusal([&] { open(config); });
    EXPECT_THAT(message,
                AllOf(HasSubstr(dir_.path()), HasSubstr("found "), HasSubstr("expected ")));
    return message;
  }
  std::string refused(const std::string& field, const std::string& value) const {
    return refused(with(field, value));
  }

  Folder dir_;
  std::string good_;
};

// CF01.
TEST_F(Config, missing_parts_are_listed) {
  const Folder empty;
  EXPECT_THAT(refusal([&] { open_model(empty.path()); }),
              AllOf(HasSubstr("config.json"), HasSubstr("model.safetensors.index.json"),
                    HasSubstr("tokenizer.model")));
  EXPECT_THAT(refusal([&] { open_model(empty / "nothing"); }), HasSubstr("nothing at this path"));
  EXPECT_THAT(refusal([&] { open_model(dir_ / "config.json"); }), HasSubstr("a file"));
  std::filesystem::remove(dir_ / "tokenizer.model");
  EXPECT_THAT(refused(good_), HasSubstr("tokenizer.model"));
  write_file(dir_ / "tokenizer.json", "{}");
  EXPECT_THAT(refused(good_), HasSubstr("tokenizer.json: model"));
  std::filesystem::remove(dir_ / "tokenizer.json");
  EXPECT_EQ(open(good_, {.needs_tokenizer = false}).tokenizer, nullptr);
}

// CF08.
TEST_F(Config, json_errors_have_line_and_column) {
  EXPECT_THAT(refused(""), HasSubstr("config.json: line 1, column 1: found the end"));
  EXPECT_THAT(refused("{\n  \"a\": 1,\n}"), HasSubstr("line 3, column 1"));
  EXPECT_THAT(refused("{\n\"a\": NaN}"), HasSubstr("line 2, column 6"));
  EXPECT_THAT(refused("{ // comment\n}"), HasSubstr("line 1, column 3"));
  // Encodings other than UTF-8: UTF-16 in both byte orders, with and without a byte order mark.
  EXPECT_THAT(refused(std::string("\xff\xfe{\0\n\0", 6)),
              HasSubstr("config.json: line 1, column 1: found 0xff (UTF-16?), expected UTF-8"));
  EXPECT_THAT(refused(std::string("\xfe\xff\0{\0\n", 6)),
              HasSubstr("config.json: line 1, column 1: found 0xfe (UTF-16?), expected UTF-8"));
  EXPECT_THAT(refused(std::string("{\0\n\0", 4)), HasSubstr("config.json: line 1, column 2: "));
  EXPECT_THAT(refused("{\n\"hidden_act\": \"\xff\"}"),
              HasSubstr("config.json: line 2, column 16: found 0xff, expected UTF-8"));
  EXPECT_EQ(open("\xEF\xBB\xBF" + good_).config.dim, 64);
}

// CF09.
TEST_F(Config, a_field_given_twice_is_refused) {
  EXPECT_THAT(refused(and_also("\"hidden_size\": 65")),
              HasSubstr("config.json: hidden_size: found the key twice"));
}

// CF10.
TEST_F(Config, an_invalid_number_of_heads_is_refused) {
  for (const char* value : {"0", "-1", "1.5", "\"32\"", "2147483648", "null"}) {
    EXPECT_THAT(refused("num_attention_heads", value),
                HasSubstr("config.json: num_attention_heads: found "))
        << value;
  }
}

// CF11.
TEST_F(Config, kv_heads_that_do_not_divide_the_heads_are_refused) {
  EXPECT_THAT(refused("num_key_value_heads", "0"), HasSubstr("num_key_value_heads: found 0"));
  EXPECT_THAT(refused("num_key_value_heads", "3"), AllOf(HasSubstr("num_key_value_heads: found 3"),
                                                         HasSubstr("num_attention_heads (4)")));
}

// CF12.
TEST_F(Config, head_dim_may_differ_from_dim_over_heads) {
  for (const char* value : {"0", "15", "1000000000"}) {
    EXPECT_THAT(refused("head_dim", value), HasSubstr("head_dim: found ")) << value;
  }
  std::string uneven = with("head_dim", "");
  uneven = replaced(uneven, "\"hidden_size\": 64", "\"hidden_size\": 66");
  EXPECT_THAT(refused(uneven), AllOf(HasSubstr("hidden_size: found 66"), HasSubstr("head_dim")));

  ModelConfig config = small_config();
  config.head_dim = 32;  // not dim / n_heads
  const Folder dir;
  write_small_model(dir, config);
  EXPECT_EQ(open_model(dir.path()).config.head_dim, 32);
}

// CF13.
TEST_F(Config, a_layer_count_unlike_the_tensors_is_refused) {
  EXPECT_THAT(refused("num_hidden_layers", "0"), HasSubstr("num_hidden_layers: found 0"));
  EXPECT_THAT(refused("num_hidden_layers", "1000000000"),
              HasSubstr("num_hidden_layers: found 1000000000"));
  EXPECT_THAT(refused("num_hidden_layers", "3"), HasSubstr("layer 2"));
  EXPECT_THAT(refused("num_hidden_layers", "1"), HasSubstr("layer 1"));
}

// CF14.
TEST_F(Config, vocabulary_sizes_must_agree) {
  const int n_pieces = open(good_).tokenizer->vocab_size();
  EXPECT_THAT(refused("vocab_size", "100"),
              AllOf(HasSubstr("vocab_size 100"), HasSubstr(fmt::format("{} tokens", n_pieces)),
                    HasSubstr("300 rows")));
  EXPECT_THAT(refused("vocab_size", "301"),
              AllOf(HasSubstr("vocab_size 301"), HasSubstr("300 rows")));
  const ModelFiles files = open(with("vocab_size", "290"));
  EXPECT_EQ(files.config.vocab_size, 300);
  EXPECT_EQ(files.tokenizer->vocab_size(), n_pieces);
  EXPECT_THAT(files.notices, Contains(HasSubstr("padding")));
}

// CF15.
TEST_F(Config, an_absurd_norm_eps_is_refused) {
  for (const char* value : {"0", "-1e-5", "NaN", "1e38", "1e400", "\"1e-5\""}) {
    const std::string message = refused("rms_norm_eps", value);
    const bool is_json = value[0] != 'N';
    EXPECT_THAT(message, HasSubstr(is_json ? "rms_norm_eps: found " : "column")) << value;
  }
}

// CF16.
TEST_F(Config, inconsistent_rope_settings_are_refused) {
  for (const char* value : {"0", "-1", "1e300"}) {
    const std::string old_style = replaced(with("rope_parameters", ""), "\"rope_theta\": 10000.0",
                                           fmt::format("\"rope_theta\": {}", value));
    EXPECT_THAT(refused(old_style), HasSubstr("rope_theta: found ")) << value;
    EXPECT_THAT(refused("rope_parameters", fmt::format("{{\"rope_theta\": {}}}", value)),
                HasSubstr("rope_parameters.rope_theta: found "));
  }
  const auto scaling = [&](const char* value) {
    return refused(replaced(with("rope_parameters", ""), "\"rope_scaling\": null",
                            std::string("\"rope_scaling\": ") + value));
  };
  EXPECT_THAT(scaling(R"({"type": "spiral", "factor": 2})"),
              HasSubstr("rope_scaling.type: found \"spiral\""));
  EXPECT_THAT(scaling(R"({"rope_type": "linear", "factor": 0})"),
              HasSubstr("rope_scaling.factor: found 0"));
  EXPECT_THAT(scaling(R"({"rope_type": "linear"})"), HasSubstr("rope_scaling.factor: found none"));
  EXPECT_THAT(scaling("[1]"), HasSubstr("rope_scaling: found an array"));
  EXPECT_THAT(scaling(R"({"type": "longrope", "long_factor": [1, 1, 1, 1, 1, 1, 1, 1]})"),
              HasSubstr("rope_scaling.short_factor: found none, expected 8 numbers"));
  EXPECT_THAT(scaling(R"({"type": "su", "short_factor": [1, 2]})"),
              HasSubstr("rope_scaling.short_factor: found 2 entries"));
  EXPECT_THAT(scaling(R"({"type": "longrope", "short_factor": [1, 1, 1, 0, 1, 1, 1, 1]})"),
              HasSubstr("rope_scaling.short_factor: found 0"));
  EXPECT_THAT(refused("rope_parameters", R"({"full_attention": {"rope_type": "default"}})"),
              HasSubstr("rope_parameters.full_attention: found an object, expected one set"));
}

// CF17.
TEST_F(Config, an_invalid_context_length_is_refused) {
  EXPECT_THAT(refused("max_position_embeddings", "0"),
              HasSubstr("max_position_embeddings: found 0"));
  EXPECT_THAT(refused("max_position_embeddings", "1099511627776"),
              AllOf(HasSubstr("1099511627776"), HasSubstr("16777216")));
}

// CF18.
TEST_F(Config, a_sliding_window_is_checked_and_a_long_one_ignored) {
  std::string mistral = replaced(good_, "LlamaForCausalLM", "MistralForCausalLM");
  mistral = replaced(mistral, "\"llama\"", "\"mistral\"");
  const auto window = [&](const char* value) {
    return replaced(mistral, "{", std::string("{\"sliding_window\": ") + value + ",");
  };
  EXPECT_THAT(refused(window("0")), HasSubstr("sliding_window: found 0"));
  EXPECT_THAT(refused(window("-5")), HasSubstr("sliding_window: found -5"));
  const ModelFiles longer = open(window("100000"));
  EXPECT_EQ(longer.config.sliding_window, 0);
  EXPECT_THAT(longer.notices, Contains(HasSubstr("full attention")));
  EXPECT_EQ(open(window("32")).config.sliding_window, 32);
  EXPECT_EQ(open(window("null")).config.sliding_window, 0);
}

// CF19.
TEST_F(Config, an_unknown_family_is_refused_with_the_known_ones) {
  const auto lists_all = AllOf(HasSubstr("llama"), HasSubstr("mistral"), HasSubstr("qwen2"));
  EXPECT_THAT(refused("model_type", "\"gpt2\""),
              AllOf(HasSubstr("model_type: found \"gpt2\""), lists_all));
  EXPECT_THAT(refused("architectures", "[\"BertModel\"]"),
              AllOf(HasSubstr("architectures: found \"BertModel\""), lists_all));
  EXPECT_THAT(refused("architectures", ""),
              AllOf(HasSubstr("architectures: found none"), lists_all));
  EXPECT_THAT(refused("model_type", ""), AllOf(HasSubstr("model_type: found none"), lists_all));
  write_file(dir_ / "config.json", with("architectures", ""));
  EXPECT_EQ(read_model_config(dir_ / "config.json").dim, 64);  // a config alone may omit it
}

// CF20.
TEST_F(Config, a_stored_lm_head_overrides_tied_embeddings) {
  const ModelFiles files = open(with("tie_word_embeddings", "true"));
  EXPECT_THAT(files.notices, Contains(AllOf(HasSubstr("tie_word_embeddings"),
                                            HasSubstr("lm_head.weight is used"))));
  EXPECT_FALSE(files.config.tied_embeddings);
  ModelConfig tied = small_config();
  tied.tied_embeddings = true;
  const Folder dir;
  write_small_model(dir, tied);
  EXPECT_THAT(open_model(dir.path()).notices, IsEmpty());
  write_file(dir / "config.json", good_);
  EXPECT_THAT(refusal([&] { open_model(dir.path()); }), HasSubstr("lm_head.weight"));
}

// CF21.
TEST_F(Config, quantised_weights_are_refused_with_their_method) {
  std::filesystem::remove(dir_ / "model.safetensors");
  write_file(dir_ / "model.safetensors", "never read");
  EXPECT_THAT(refused(and_also(R"("quantization_config": {"quant_method": "gptq", "bits": 4})")),
              HasSubstr("quantization_config.quant_method: found \"gptq\""));
}

// CF22.
TEST_F(Config, a_dtype_unlike_the_stored_one_gives_a_notice) {
  std::string config = replaced(good_, "\"dtype\": \"bfloat16\"", "\"dtype\": \"float32\"");
  const ModelFiles files = open(config);
  EXPECT_EQ(files.stored_dtype, kernels::DType::BF16);
  EXPECT_THAT(files.notices, Contains(AllOf(HasSubstr("f32"), HasSubstr("bf16"))));
}

// CF23.
TEST_F(Config, eos_ids_are_checked_and_missing_ones_reported) {
  std::filesystem::remove(dir_ / "generation_config.json");
  EXPECT_EQ(open(with("eos_token_id", "[2, 7]")).config.eos_ids, (std::vector<TokenId>{2, 7}));
  for (const char* value : {"1.5", "\"</s>\"", "[[2]]"}) {
    EXPECT_THAT(refused("eos_token_id", value), HasSubstr("config.json: eos_token_id: found "))
        << value;
  }
  for (const char* value : {"", "null", "[]"}) {
    EXPECT_THAT(open(with("eos_token_id", value)).notices,
                Contains(HasSubstr("or at the length limit")));
  }
  for (const char* value : {"-1", "300", "[2, 300]"}) {
    const ModelFiles files = open(with("eos_token_id", value));
    EXPECT_EQ(files.config.eos_ids.empty(), value[0] != '[') << value;
    EXPECT_THAT(files.notices,
                Contains(HasSubstr("is not an id of the vocabulary (300): ignored")));
  }
  // eos_token_id of generation_config.json takes precedence unless it is null or an empty list. It
  // also does if all its ids lie outside the vocabulary.
  const auto ends = [&](const char* text) {
    write_file(dir_ / "generation_config.json", text);
    return open(good_).config.eos_ids;
  };
  const std::vector<TokenId> own = open(good_).config.eos_ids;
  EXPECT_EQ(ends(R"({"eos_token_id": null})"), own);
  EXPECT_EQ(ends(R"({"eos_token_id": []})"), own);
  EXPECT_EQ(ends(R"({"eos_token_id": [7, 999]})"), (std::vector<TokenId>{7}));
  EXPECT_THAT(ends(R"({"eos_token_id": -1})"), IsEmpty());
  write_file(dir_ / "generation_config.json", R"({"eos_token_id": [[2]]})");
  EXPECT_THAT(refused(good_), HasSubstr("generation_config.json: eos_token_id: found an array"));
}

// CF24.
TEST_F(Config, a_tensor_of_another_shape_is_refused) {
  const std::string bytes = read_file(dir_ / "model.safetensors");
  write_file(dir_ / "model.safetensors", replaced(bytes, "[96, 64]", "[64, 96]"));
  EXPECT_THAT(refused(good_), AllOf(HasSubstr("model.layers.0.mlp.gate_proj.weight"),
                                    HasSubstr("found [64, 96]"), HasSubstr("expected [96, 64]")));
}

TEST_F(Config, transformers_4_and_5_spell_the_same_model) {
  const std::string old_style = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5, "rope_theta": 20000.0, "torch_dtype": "bfloat16", "eos_token_id": 2,
    "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}})";
  const std::string new_style = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 256, "head_dim": 16,
    "rms_norm_eps": 1e-5, "dtype": "bfloat16", "eos_token_id": 2, "rope_parameters": {
    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 20000.0}})";
  for (const std::string& text : {old_style, new_style}) {
    const ModelFiles files = open(text);
    EXPECT_THAT(files.notices, IsEmpty());
    EXPECT_EQ(files.config.head_dim, 16);
    EXPECT_EQ(files.config.rope.type, RopeConfig::Type::Yarn);
    EXPECT_EQ(files.config.rope.theta, 20000);
    EXPECT_EQ(files.config.rope.factor, 4);
    EXPECT_EQ(files.config.rope.original_max_seq_len, 64);
  }
}

/// A config's rope_parameters and max_position_embeddings (`stated`), and the context length
/// expected from them.
struct Scaling {
  const char* rope;
  int stated, context;
};

TEST_F(Config, rope_scaling_extends_the_context) {
  const std::string eight = "[1, 1, 1, 1, 1, 1, 1, 1]";
  const std::string longrope =
      R"({"rope_type": "longrope", "short_factor": )" + eight + R"(, "long_factor": )" + eight;
  const std::string with_factor = longrope + R"(, "factor": 3})";
  const std::string original = longrope + R"(, "original_max_position_embeddings": 100})";
  const Scaling scalings[] = {
      {R"({"rope_type": "default"})", 64, 64},
      {R"({"rope_type": "linear", "factor": 4.0})", 64, 256},
      {R"({"rope_type": "linear", "factor": 0.5})", 64, 64},
      {R"({"rope_type": "dynamic", "factor": 2.5})", 65, 162},
      {R"({"rope_type": "yarn", "factor": 4})", 64, 256},
      {R"({"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32})", 64, 128},
      {R"({"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32})", 200, 200},
      {R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4})", 64,
       512},
      {with_factor.c_str(), 64, 192},
      {original.c_str(), 400, 400},
  };
  for (const Scaling& s : scalings) {
    std::string config =
        replaced(with("rope_parameters", s.rope), "\"max_position_embeddings\": 256",
                 fmt::format("\"max_position_embeddings\": {}", s.stated));
    const ModelFiles files = open(config);
    EXPECT_EQ(files.config.max_seq_len, s.context) << s.rope;
    EXPECT_EQ(files.config.max_position_embeddings, s.stated) << s.rope;
    EXPECT_THAT(files.notices, IsEmpty()) << s.rope;
    // Written and read back, it is the same model.
    const Folder copy;
    write_model(copy.path(), files.config, *files.tensors, kernels::DType::BF16, dir_.path());
    const ModelFiles again = open_model(copy.path());
    EXPECT_EQ(again.config.max_seq_len, s.context) << s.rope;
    EXPECT_EQ(again.config.rope.original_max_seq_len, files.config.rope.original_max_seq_len);
    EXPECT_EQ(again.config.rope.long_factor, files.config.rope.long_factor);
    EXPECT_THAT(again.notices, IsEmpty()) << s.rope;
  }
}

TEST_F(Config, rope_lengths_equal_those_of_transformers) {
  // Dynamic scaling starts after max_position_embeddings and ignores the original length.
  ModelFiles files = open(with("rope_parameters", R"({"rope_type": "dynamic", "factor": 2,
                "original_max_position_embeddings": 32, "beta_fast": 1})"));
  EXPECT_EQ(files.config.rope.original_max_seq_len, 256);
  EXPECT_THAT(
      files.notices,
      testing::ElementsAre(HasSubstr(
          "rope_parameters: \"original_max_position_embeddings\", \"beta_fast\" not used by "
          "dynamic")));
  // A field beside the object takes precedence over the same field inside it.
  const std::string yarn = with("rope_parameters", R"({"rope_type": "yarn", "factor": 4,
           "original_max_position_embeddings": 32})");
  files = open(replaced(yarn, "{", R"({"original_max_position_embeddings": 128,)"));
  EXPECT_EQ(files.config.rope.original_max_seq_len, 128);
  EXPECT_EQ(files.config.max_seq_len, 512);
  // rope_scaling, the older name, takes precedence over rope_parameters.
  files = open(replaced(yarn, "\"rope_scaling\": null",
                        R"("rope_scaling": {"type": "linear", "factor": 2.0})"));
  EXPECT_EQ(files.config.rope.type, RopeConfig::Type::Linear);
  EXPECT_EQ(files.config.max_seq_len, 512);
  EXPECT_THAT(files.notices, Contains(HasSubstr("using rope_scaling, as transformers does")));
}

TEST_F(Config, a_context_longer_than_the_models_gives_a_notice) {
  ModelFiles files = open(good_, {.context = 100});
  EXPECT_EQ(files.config.max_seq_len, 100);
  EXPECT_THAT(files.notices, IsEmpty());
  files = open(good_, {.context = 1000});
  EXPECT_EQ(files.config.max_seq_len, 1000);
  EXPECT_THAT(files.notices, Contains(HasSubstr("more than the model's 256")));
  FileLimits limits;
  limits.max_seq_len = 900;
  EXPECT_THROW(open(good_, {.context = 1000, .limits = limits}), Error);
  // A sliding window takes effect if the context is longer than the window.
  std::string mistral = replaced(good_, "LlamaForCausalLM", "MistralForCausalLM");
  mistral =
      replaced(replaced(mistral, "\"llama\"", "\"mistral\""), "{", "{\"sliding_window\": 300,");
  EXPECT_EQ(open(mistral).config.sliding_window, 0);
  EXPECT_EQ(open(mistral, {.context = 1000}).config.sliding_window, 300);
  files = open(with("max_position_embeddings", ""));
  EXPECT_EQ(files.config.max_seq_len, 2048);
  EXPECT_THAT(files.notices, Contains(HasSubstr("no max_position_embeddings: using 2048")));
}

TEST_F(Config, fields_without_effect_are_named_unless_harmless) {
  EXPECT_THAT(open(and_also(R"("attention_dropout": 0.1, "use_cache": true, "pretraining_tp": 2,
      "torchscript": false, "num_beams": 1, "transformers_version": "4.40.0", "strange": null,
      "layer_types": ["full_attention", "full_attention"])"))
                  .notices,
              IsEmpty());
  EXPECT_THAT(
      open(and_also(R"("residual_multiplier": 0.5, "attn_logit_softcapping": 30.0,
      "sliding_window": 16, "auto_map": {"AutoModelForCausalLM": "x.Y"}, "temperature": 0.5)"))
          .notices,
      testing::ElementsAre(HasSubstr(
          "config.json: residual_multiplier, attn_logit_softcapping, sliding_window, auto_map, "
          "temperature: ignored, has no effect for llama")));
}

TEST_F(Config, spellings_of_published_models_are_read) {
  EXPECT_EQ(open(with("hidden_act", "\"swish\"")).config.dim, 64);
  EXPECT_EQ(open(replaced(good_, "LlamaForCausalLM", "LLaMAForCausalLM")).config.dim, 64);
  EXPECT_EQ(open(with("bos_token_id", "-1")).config.bos_id, std::nullopt);
}

class GenerationConfig : public Config {
 protected:
  ModelFiles open_with(const std::string& generation, GenerationUse use) const {
    write_file(dir_ / "generation_config.json", generation);
    return open(good_, {.generation = use});
  }
};

TEST_F(GenerationConfig, unsupported_fields_are_named) {
  const char* kText = R"({"eos_token_id": 2, "do_sample": true, "temperature": 0.6, "top_p": 0.9,
    "repetition_penalty": 1.3, "max_new_tokens": 5, "no_repeat_ngram_size": 3, "num_beams": 4,
    "suppress_tokens": [1], "stop_strings": "x", "max_length": 20, "length_penalty": 1.0,
    "_from_model_config": true, "transformers_version": "5.24.0", "bad_words_ids": null})";
  const ModelFiles files = open_with(kText, GenerationUse::NotApplied);
  EXPECT_THAT(
      files.notices,
      testing::ElementsAre(
          HasSubstr("generation_config.json: do_sample true, temperature 0.6, top_p 0.9, "
                    "repetition_penalty 1.3, max_new_tokens 5: not applied; --defaults "
                    "model applies them"),
          HasSubstr("generation_config.json: stop_strings \"x\": not applied, as "
                    "transformers requires a tokenizer argument too; --stop TEXT applies one"),
          HasSubstr("no_repeat_ngram_size 3, num_beams 4, suppress_tokens an array: not "
                    "applied; not supported")));
  EXPECT_THAT(open_with(kText, GenerationUse::Silent).notices, IsEmpty());
  const ModelFiles applied = open_with(kText, GenerationUse::Applied);
  EXPECT_THAT(applied.notices, Contains(HasSubstr("max_new_tokens 5: applied unless an option")));
  EXPECT_TRUE(applied.generation.do_sample);
  EXPECT_EQ(applied.generation.temperature, 0.6f);
  EXPECT_EQ(applied.generation.top_p, 0.9f);
  EXPECT_EQ(applied.generation.top_k, std::nullopt);
  EXPECT_EQ(applied.generation.repetition_penalty, 1.3f);
  EXPECT_EQ(applied.generation.max_new_tokens, 5);
}

TEST_F(GenerationConfig, defaults_without_effect_are_not_named) {
  EXPECT_THAT(open_with(R"({"eos_token_id": 2, "do_sample": false, "temperature": 1.0, "top_k": 50,
                            "top_p": 1.0, "repetition_penalty": 1.0, "pad_token_id": 0})",
                        GenerationUse::NotApplied)
                  .notices,
              IsEmpty());
}

TEST_F(GenerationConfig, an_invalid_default_is_refused_when_applied) {
  for (const char* text :
       {R"({"temperature": "hot"})", R"({"top_p": 1.5})", R"({"top_k": -1})", R"({"top_k": 2.5})",
        R"({"max_new_tokens": 2.5})", R"({"max_new_tokens": 0})", R"({"repetition_penalty": 0})",
        R"({"do_sample": "yes"})"}) {
    EXPECT_THAT(refusal([&] { open_with(text, GenerationUse::Applied); }),
                AllOf(HasSubstr("generation_config.json: "), HasSubstr("found ")))
        << text;
    EXPECT_THAT(open_with(text, GenerationUse::NotApplied).notices,
                testing::ElementsAre(HasSubstr("not applied; --defaults model")))
        << text;
  }
}

TEST_F(Config, a_fraction_in_gemmas_query_scalar_is_kept) {
  const std::string gemma = R"({"model_type": "gemma2", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
    "head_dim": 16, "query_pre_attn_scalar": 100.5})";
  const auto read = [&](const std::string& text) {
    write_file(dir_ / "config.json", text);
    return read_model_config(dir_ / "config.json");
  };
  const ModelConfig config = read(gemma);
  EXPECT_DOUBLE_EQ(config.attention_scale, 1 / std::sqrt(100.5));
  EXPECT_DOUBLE_EQ(read(config_json(config, kernels::DType::BF16)).attention_scale,
                   config.attention_scale);
  const std::string whole =
      config_json(read(replaced(gemma, "100.5", "144")), kernels::DType::BF16);
  EXPECT_THAT(whole, HasSubstr("\"query_pre_attn_scalar\": 144,"));
}

TEST_F(Config, qwen2_reads_max_window_layers_or_layer_types) {
  const std::string qwen = R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
    "max_position_embeddings": 256, "use_sliding_window": true, "sliding_window": 32, )";
  const auto read = [&](const std::string& rest) {
    write_file(dir_ / "config.json", qwen + rest);
    return read_model_config(dir_ / "config.json");
  };
  EXPECT_TRUE(read("\"max_window_layers\": 1}").qkv_bias);
  EXPECT_EQ(read("\"max_window_layers\": 1}").layer_kinds, global_then_local(1, 3));
  EXPECT_EQ(read("\"max_window_layers\": 28}").sliding_window, 0);
  const char* kTypes =
      R"("layer_types": ["full_attention", "sliding_attention", "sliding_attention"]})";
  EXPECT_EQ(read(kTypes).layer_kinds, global_then_local(1, 3));
  EXPECT_EQ(read(kTypes).sliding_window, 32);
  const ModelConfig mixed =
      read(R"("layer_types": ["sliding_attention", "full_attention", "sliding_attention"]})");
  EXPECT_EQ(mixed.window_of(0), 32);
  EXPECT_EQ(mixed.window_of(1), 0);
  EXPECT_EQ(mixed.window_of(2), 32);
  EXPECT_THAT(refusal([&] { read(R"("layer_types": ["full_attention"]})"); }),
              HasSubstr("1 entries"));
}

}  // namespace
}  // namespace engine::test
