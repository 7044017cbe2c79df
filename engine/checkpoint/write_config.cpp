// Writes config.json so that transformers 4 and 5 read the same model from it.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/checkpoint/config_file.h"

namespace engine {
namespace {

const char* architecture_of(const std::string& model_type) {
  if (model_type == "mistral") return "MistralForCausalLM";
  if (model_type == "qwen2") return "Qwen2ForCausalLM";
  return "LlamaForCausalLM";
}

// Builds a JSON object; members keep the order in which they were added.
class ObjectText {
 public:
  void raw(const char* name, const std::string& value) {
    members_.push_back(json_quoted(name) + ": " + value);
  }
  void text(const char* name, const std::string& value) { raw(name, json_quoted(value)); }
  void integer(const char* name, std::int64_t value) { raw(name, std::to_string(value)); }
  void real(const char* name, double value) {
    std::string digits =
        fmt::format("{}", value);  // the shortest text that parses to the same value
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    raw(name, digits);
  }
  void boolean(const char* name, bool value) { raw(name, value ? "true" : "false"); }

  std::string one_line() const { return fmt::format("{{{}}}", fmt::join(members_, ", ")); }
  std::string lines() const { return fmt::format("{{\n  {}\n}}\n", fmt::join(members_, ",\n  ")); }

 private:
  std::vector<std::string> members_;
};

ObjectText rope_members(const RopeConfig& rope) {
  using Type = RopeConfig::Type;
  ObjectText out;
  out.text("rope_type", name_of(rope.type));
  if (rope.type == Type::Default) return out;
  out.real("factor", rope.factor);
  if (rope.original_max_seq_len > 0 && rope.type != Type::Dynamic) {
    out.integer("original_max_position_embeddings", rope.original_max_seq_len);
  }
  if (rope.attention_factor > 0) out.real("attention_factor", rope.attention_factor);
  if (rope.type == Type::Longrope) {
    out.raw("short_factor", fmt::format("[{}]", fmt::join(rope.short_factor, ", ")));
    out.raw("long_factor", fmt::format("[{}]", fmt::join(rope.long_factor, ", ")));
  }
  if (rope.type == Type::Yarn) {
    out.real("beta_fast", rope.beta_fast);
    out.real("beta_slow", rope.beta_slow);
    if (rope.mscale > 0) out.real("mscale", rope.mscale);
    if (rope.mscale_all_dim > 0) out.real("mscale_all_dim", rope.mscale_all_dim);
    out.boolean("truncate", rope.truncate);
  }
  if (rope.type == Type::Llama3) {
    out.real("low_freq_factor", rope.low_freq_factor);
    out.real("high_freq_factor", rope.high_freq_factor);
  }
  return out;
}

std::string ids_text(const std::vector<TokenId>& ids) {
  if (ids.empty()) return "null";
  if (ids.size() == 1) return std::to_string(ids[0]);
  return fmt::format("[{}]", fmt::join(ids, ", "));
}

std::string id_text(const std::optional<TokenId>& id) {
  return id ? std::to_string(*id) : "null";
}

void write_window(const ModelConfig& config, ObjectText& out) {
  const bool is_sliding = config.sliding_window > 0;
  if (config.model_type == "llama") return;
  out.raw("sliding_window", is_sliding ? std::to_string(config.sliding_window) : "null");
  if (config.model_type != "qwen2") return;
  out.boolean("use_sliding_window", is_sliding);
  out.integer("max_window_layers", is_sliding ? config.n_full_layers : config.n_layers);
}

/// The value to write as max_position_embeddings. It is the length before RoPE scaling, because
/// reading the file applies the scaling again.
int stated_positions(const ModelConfig& config) {
  if (config.max_position_embeddings > 0) return config.max_position_embeddings;
  const bool is_dynamic = config.rope.type == RopeConfig::Type::Dynamic;
  return is_dynamic && config.rope.original_max_seq_len > 0 ? config.rope.original_max_seq_len
                                                            : config.max_seq_len;
}

}  // namespace

const char* torch_name(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::F32:
      return "float32";
    case kernels::DType::F16:
      return "float16";
    case kernels::DType::BF16:
      return "bfloat16";
  }
  return "?";
}

std::string config_json(const ModelConfig& config, kernels::DType dtype) {
  ObjectText out;
  out.raw("architectures", "[" + json_quoted(architecture_of(config.model_type)) + "]");
  out.text("model_type", config.model_type);
  out.integer("hidden_size", config.dim);
  out.integer("intermediate_size", config.hidden_dim);
  out.integer("num_hidden_layers", config.n_layers);
  out.integer("num_attention_heads", config.n_heads);
  out.integer("num_key_value_heads", config.n_kv_heads);
  out.integer("head_dim", config.head_dim);
  out.integer("vocab_size", config.vocab_size);
  out.integer("max_position_embeddings", stated_positions(config));
  out.text("hidden_act", "silu");
  // Writes the shortest decimal that gives the same float; formatted as a double it would be
  // longer.
  out.raw("rms_norm_eps", fmt::format("{}", config.norm_eps));
  out.boolean("tie_word_embeddings", config.tied_embeddings);
  if (config.model_type == "llama") {
    out.boolean("attention_bias", config.qkv_bias);
    out.boolean("mlp_bias", config.mlp_bias);
  }
  write_window(config, out);
  ObjectText rope = rope_members(config.rope);
  out.real("rope_theta", config.rope.theta);
  out.raw("rope_scaling", config.rope.type == RopeConfig::Type::Default ? "null" : rope.one_line());
  rope.real("rope_theta", config.rope.theta);
  out.raw("rope_parameters", rope.one_line());
  out.raw("bos_token_id", id_text(config.bos_id));
  out.raw("eos_token_id", ids_text(config.eos_ids));
  out.raw("pad_token_id", id_text(config.pad_id));
  out.text("torch_dtype", torch_name(dtype));
  out.text("dtype", torch_name(dtype));
  return out.lines();
}

std::string generation_config_json(const ModelConfig& config) {
  ObjectText out;
  out.raw("bos_token_id", id_text(config.bos_id));
  out.raw("eos_token_id", ids_text(config.eos_ids));
  out.raw("pad_token_id", id_text(config.pad_id));
  return out.lines();
}

}  // namespace engine
