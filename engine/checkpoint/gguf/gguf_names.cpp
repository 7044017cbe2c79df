#include "engine/checkpoint/gguf/gguf_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/base/types.h"

namespace engine {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr Names kOutside[] = {
    {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"}};
// Tensors of a layer. Two of them have other names in models with post norms (below).
constexpr Names kInLayer[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};
constexpr std::string_view kLayers = "model.layers.";

template <std::size_t n>
std::string_view other_name(const Names (&names)[n], std::string_view name) {
  const auto* at = std::ranges::find(names, name, &Names::first);
  ensure(at != std::end(names), "a tensor of tensors_of()");
  return at->second;
}

// Architectures for which GGUF files store the two rows of a rotary pair next to each other
// (llama.cpp's rope type NORM).
bool interleaves_pairs(const std::string& model_type) {
  return model_type == "llama" || model_type == "mistral" || model_type == "granite" ||
         model_type == "smollm3";
}

int interleaved_heads(std::string_view part, const ModelConfig& config) {
  if (!interleaves_pairs(config.model_type)) return 0;
  if (part == "self_attn.q_proj") return config.n_heads;
  return part == "self_attn.k_proj" ? config.n_kv_heads : 0;
}

}  // namespace

GgufPlace place_in_gguf(const std::string& name, const ModelConfig& config) {
  const std::size_t end = name.rfind('.');  // before "weight" or "bias"
  const std::string ending = name.substr(end);
  std::string_view part = std::string_view(name).substr(0, end);
  GgufPlace place;
  if (part.ends_with("norm") && ending == ".weight")
    place.offset = part.ends_with("q_norm") || part.ends_with("k_norm") ? config.head_norm_offset
                                                                        : config.norm_offset;
  if (!part.starts_with(kLayers)) {
    place.name = std::string(other_name(kOutside, part)) + ending;
    return place;
  }
  part.remove_prefix(kLayers.size());
  const std::size_t dot = part.find('.');
  const std::string layer(part.substr(0, dot));
  part.remove_prefix(dot + 1);
  std::string_view other = other_name(kInLayer, part);
  if (config.post_norms && part == "post_attention_layernorm") other = "post_attention_norm";
  place.name = "blk." + layer + "." + std::string(other) + ending;
  place.n_interleaved_heads = interleaved_heads(part, config);
  return place;
}

}  // namespace engine
