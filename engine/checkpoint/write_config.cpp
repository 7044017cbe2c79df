// Writes config.json so that transformers 4 and 5 read the same model from it.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/families/architectures.h"
#include "engine/checkpoint/families/write_family.h"

namespace engine {
namespace {

const char* class_of(const std::string& model_type) {
  const Architecture* architecture = architecture_of_type(model_type);
  return architecture ? architecture->class_name : "LlamaForCausalLM";
}

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

void write_rope(const ModelConfig& config, ObjectText& out) {
  ObjectText rope = rope_members(config.rope);
  const double factor = static_cast<double>(config.rope.rotary_dim) / config.head_dim;
  if (factor > 0) out.real("partial_rotary_factor", factor);
  if (factor > 0) rope.real("partial_rotary_factor", factor);
  out.real("rope_theta", config.rope.theta);
  out.raw("rope_scaling", config.rope.type == RopeConfig::Type::Default ? "null" : rope.one_line());
  rope.real("rope_theta", config.rope.theta);
  if (!config.local_rope) return out.raw("rope_parameters", rope.one_line());
  ObjectText local = rope_members(*config.local_rope), sets;
  local.real("rope_theta", config.local_rope->theta);
  out.real("rope_local_base_freq", config.local_rope->theta);
  sets.raw("full_attention", rope.one_line());
  sets.raw("sliding_attention", local.one_line());
  out.raw("rope_parameters", sets.one_line());
}

std::string ids_text(const std::vector<TokenId>& ids) {
  if (ids.empty()) return "null";
  if (ids.size() == 1) return std::to_string(ids[0]);
  return fmt::format("[{}]", fmt::join(ids, ", "));
}

std::string id_text(const std::optional<TokenId>& id) {
  return id ? std::to_string(*id) : "null";
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
    default:
      break;
  }
  return "?";
}

std::string config_json(const ModelConfig& config, kernels::DType dtype) {
  ObjectText out;
  out.raw("architectures", "[" + json_quoted(class_of(config.model_type)) + "]");
  out.text("model_type", config.model_type);
  out.integer("hidden_size", config.dim);
  out.integer("intermediate_size", config.hidden_dim);
  out.integer("num_hidden_layers", config.n_layers);
  out.integer("num_attention_heads", config.n_heads);
  out.integer("num_key_value_heads", config.n_kv_heads);
  out.integer("head_dim", config.head_dim);
  out.integer("vocab_size", config.vocab_size);
  out.integer("max_position_embeddings", stated_positions(config));
  out.real("rms_norm_eps", config.norm_eps);
  out.boolean("tie_word_embeddings", config.tied_embeddings);
  write_family(config, out);
  write_rope(config, out);
  if (!config.shares_embedding_of.empty())
    out.text("shares_embedding_of", config.shares_embedding_of);
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
