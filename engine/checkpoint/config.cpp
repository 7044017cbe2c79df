#include "engine/checkpoint/config.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace engine {
namespace {

bool is_power_of_four(int x) {
  return x > 0 && (x & (x - 1)) == 0 && (x & 0x55555555) != 0;
}

}  // namespace

std::int64_t ModelConfig::n_params() const {
  std::int64_t n = 0;
  for (const TensorSpec& tensor : tensors_of(*this)) {
    std::int64_t n_elements = 1;
    for (const std::int64_t size : tensor.shape) n_elements *= size;
    n += n_elements;
  }
  return n;
}

LayerKind ModelConfig::kind_of(int layer) const {
  if (layer_kinds.empty()) return {};
  return layer_kinds[static_cast<std::size_t>(layer) % layer_kinds.size()];
}

bool is_plain(const ModelConfig& c) {
  const bool blocks = !c.post_norms && !c.qk_norm && !c.fused_projections && c.norm_offset == 0 &&
                      c.gate == kernels::Gate::Silu;
  const bool factors = c.embedding_multiplier == 1 && c.residual_multiplier == 1 &&
                       c.attention_scale == 0 && c.attention_softcap == 0 &&
                       c.logits_scaling == 1 && c.logit_softcap == 0;
  return blocks && factors && !c.local_rope && c.rope.rotary_dim == 0 &&
         std::ranges::all_of(c.layer_kinds, [](const LayerKind& kind) { return kind.rotated; });
}

std::vector<LayerKind> global_then_local(int n_full, int n_layers) {
  std::vector<LayerKind> kinds(static_cast<std::size_t>(n_layers));
  for (int layer = 0; layer < std::min(n_full, n_layers); layer++)
    kinds[static_cast<std::size_t>(layer)].local = false;
  return kinds;
}

std::string name_of(const ModelScale& scale) {
  return fmt::format("{}x{}", scale.width, scale.depth);
}

ModelScale scale_from(const std::string& text) {
  ModelScale scale{0, 0};
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, scale.width);
  const bool has_x = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  if (has_x) {
    const auto depth = std::from_chars(width.ptr + 1, end, scale.depth);
    if (depth.ec != std::errc() || depth.ptr != end) scale.depth = 0;
  }
  constexpr int kMaxWidth = 1024, kMaxDepth = 1024;
  if (!is_power_of_four(scale.width) || scale.width > kMaxWidth || scale.depth < 1 ||
      scale.depth > kMaxDepth) {
    throw Error(ErrorCode::Usage,
                fmt::format("--scale: found \"{}\", expected WxD with width W one of 1, 4, 16, 64, "
                            "256, 1024 and depth D of 1 to 1024; try 4x2",
                            text.substr(0, 40)));
  }
  return scale;
}

std::vector<TensorSpec> tensors_of(const ModelConfig& config) {
  const std::int64_t dim = config.dim;
  const std::int64_t hidden_dim = config.hidden_dim;
  const std::int64_t q_dim = std::int64_t{config.n_heads} * config.head_dim;
  const std::int64_t kv_dim = std::int64_t{config.n_kv_heads} * config.head_dim;
  std::vector<TensorSpec> tensors;
  tensors.push_back({"model.embed_tokens.weight", {config.vocab_size, dim}});
  for (int layer = 0; layer < config.n_layers; layer++) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const auto linear = [&](const char* name, std::int64_t n_out, std::int64_t n_in, bool bias) {
      tensors.push_back({prefix + name + ".weight", {n_out, n_in}});
      if (bias) tensors.push_back({prefix + name + ".bias", {n_out}});
    };
    const auto norm = [&](const char* name, std::int64_t size) {
      tensors.push_back({prefix + name + ".weight", {size}});
    };
    norm("input_layernorm", dim);
    if (config.fused_projections) {
      linear("self_attn.qkv_proj", q_dim + 2 * kv_dim, dim, config.qkv_bias);
    } else {
      linear("self_attn.q_proj", q_dim, dim, config.qkv_bias);
      linear("self_attn.k_proj", kv_dim, dim, config.qkv_bias);
      linear("self_attn.v_proj", kv_dim, dim, config.qkv_bias);
    }
    if (config.qk_norm) norm("self_attn.q_norm", config.head_dim);
    if (config.qk_norm) norm("self_attn.k_norm", config.head_dim);
    linear("self_attn.o_proj", dim, q_dim, config.attn_out_bias);
    norm("post_attention_layernorm", dim);
    if (config.post_norms) norm("pre_feedforward_layernorm", dim);
    if (config.fused_projections) {
      linear("mlp.gate_up_proj", 2 * hidden_dim, dim, config.mlp_bias);
    } else {
      linear("mlp.gate_proj", hidden_dim, dim, config.mlp_bias);
      linear("mlp.up_proj", hidden_dim, dim, config.mlp_bias);
    }
    linear("mlp.down_proj", dim, hidden_dim, config.mlp_bias);
    if (config.post_norms) norm("post_feedforward_layernorm", dim);
  }
  tensors.push_back({"model.norm.weight", {dim}});
  if (!config.tied_embeddings) tensors.push_back({"lm_head.weight", {config.n_outputs(), dim}});
  return tensors;
}

std::vector<TensorSpec> own_tensors_of(const ModelConfig& config) {
  std::vector<TensorSpec> tensors = tensors_of(config);
  if (config.shares_embedding_of.empty()) return tensors;
  std::erase_if(tensors, [](const TensorSpec& spec) {
    return spec.name == "model.embed_tokens.weight" || spec.name == "lm_head.weight";
  });
  return tensors;
}

const char* name_of(RopeConfig::Type type) {
  switch (type) {
    case RopeConfig::Type::Default:
      return "default";
    case RopeConfig::Type::Linear:
      return "linear";
    case RopeConfig::Type::Dynamic:
      return "dynamic";
    case RopeConfig::Type::Yarn:
      return "yarn";
    case RopeConfig::Type::Llama3:
      return "llama3";
    case RopeConfig::Type::Longrope:
      return "longrope";
  }
  return "?";
}

}  // namespace engine
