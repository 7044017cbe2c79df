#include "engine/checkpoint/families/write_family.h"

#include <algorithm>
#include <cmath>

#include "engine/checkpoint/families/architectures.h"

namespace engine {
namespace {

void write_cap(const char* name, float cap, ObjectText& out) {
  if (cap > 0)
    out.real(name, cap);
  else
    out.raw(name, "null");
}

void write_gemma(const ModelConfig& config, ObjectText& out) {
  const double scalar = 1 / (config.attention_scale * config.attention_scale);
  const double whole = std::round(scalar);
  constexpr double kRounding = 1e-6;  // attention_scale may have been rounded to a float
  if (std::abs(scalar - whole) <= kRounding * scalar)
    out.integer("query_pre_attn_scalar", std::lround(whole));
  else
    out.real("query_pre_attn_scalar", scalar);
  write_cap("attn_logit_softcapping", config.attention_softcap, out);
  write_cap("final_logit_softcapping", config.logit_softcap, out);
}

void write_granite(const ModelConfig& config, ObjectText& out) {
  out.real("embedding_multiplier", config.embedding_multiplier);
  out.real("residual_multiplier", config.residual_multiplier);
  out.real("attention_multiplier", config.attention_scale);
  out.real("logits_scaling", config.logits_scaling);
}

void write_layer_types(const ModelConfig& config, ObjectText& out) {
  std::vector<std::string> types;
  for (int layer = 0; layer < config.n_layers; layer++)
    types.emplace_back(config.kind_of(layer).local ? "\"sliding_attention\""
                                                   : "\"full_attention\"");
  out.raw("layer_types", fmt::format("[{}]", fmt::join(types, ", ")));
}

void write_no_rope_layers(const ModelConfig& config, ObjectText& out) {
  std::vector<int> rotated;
  for (int layer = 0; layer < config.n_layers; layer++)
    rotated.push_back(config.kind_of(layer).rotated ? 1 : 0);
  out.raw("no_rope_layers", fmt::format("[{}]", fmt::join(rotated, ", ")));
}

/// Number of leading global layers.
int n_leading_global(const ModelConfig& config) {
  int n = 0;
  while (n < config.n_layers && !config.kind_of(n).local) n++;
  return n;
}

void write_layers(const ModelConfig& config, ObjectText& out) {
  const std::string& type = config.model_type;
  const bool is_sliding = config.sliding_window > 0;
  if (type == "smollm3") write_no_rope_layers(config, out);
  if (is_one_of(type, {"llama", "granite"})) return;
  // Gemma lists its layers' types even without a window, and transformers then needs a number here.
  const bool has_types = is_gemma(type);
  const int window = is_sliding ? config.sliding_window : config.max_seq_len;
  out.raw("sliding_window", is_sliding || has_types ? std::to_string(window) : "null");
  if (is_one_of(type, {"mistral", "phi3"})) return;
  if (!has_types) out.boolean("use_sliding_window", is_sliding);
  if (is_one_of(type, {"qwen2", "qwen3"}))
    out.integer("max_window_layers", is_sliding ? n_leading_global(config) : config.n_layers);
  if (is_sliding || has_types) write_layer_types(config, out);
}

}  // namespace

void write_family(const ModelConfig& config, ObjectText& out) {
  const std::string& type = config.model_type;
  if (config.gate == kernels::Gate::GeluTanh)
    out.text("hidden_activation", "gelu_pytorch_tanh");
  else
    out.text("hidden_act", "silu");
  if (!is_one_of(type, {"mistral", "qwen2", "phi3"}))
    out.boolean("attention_bias", config.qkv_bias);
  if (is_one_of(type, {"llama", "smollm3", "granite"})) out.boolean("mlp_bias", config.mlp_bias);
  if (type == "granite") write_granite(config, out);
  if (is_gemma(type)) write_gemma(config, out);
  write_layers(config, out);
}

void check_describable(const ModelConfig& config) {
  const bool implied =
      !is_gemma(config.model_type) ||
      (config.norm_offset == config.head_norm_offset &&
       config.embedding_multiplier == static_cast<float>(std::sqrt(double{1} * config.dim)));
  if (implied && (!config.qk_norm || config.norm_eps == config.head_norm_eps)) return;
  throw Error(ErrorCode::Usage,
              fmt::format("model scale: found a wider {}, expected a model that its config.json "
                          "can describe; run the model itself with --scale, or scale its depth",
                          config.model_type));
}

}  // namespace engine
