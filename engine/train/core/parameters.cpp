#include "engine/train/core/parameters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/types.h"
#include "kernels/philox.h"

namespace engine {
namespace {

// The random stream of initial weights, which decoding does not use.
constexpr std::uint32_t kInitStream = 0x1417;

class ParameterSource : public TensorSource {
 public:
  ParameterSource(const std::vector<float>& parameters, std::vector<NamedPart> parts)
      : parameters_(parameters), parts_(std::move(parts)) {}

  bool has(const std::string& name) const override { return find(name) != nullptr; }

  Tensor read(const std::string& name) const override {
    const NamedPart* part = find(name);
    if (!part) throw Error(ErrorCode::BadInput, path() + ": no tensor " + name);
    return {kernels::DType::F32, part->shape, parameters_.data() + part->at, nullptr};
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const NamedPart& part : parts_) names.push_back(part.name);
    return names;
  }

  std::string path() const override { return "the model in training"; }

 private:
  const NamedPart* find(const std::string& name) const {
    const auto found = std::find_if(parts_.begin(), parts_.end(),
                                    [&](const NamedPart& part) { return part.name == name; });
    return found == parts_.end() ? nullptr : &*found;
  }

  const std::vector<float>& parameters_;  // owned by the trainer
  std::vector<NamedPart> parts_;
};

void refuse(const std::string& what) {
  throw Error(ErrorCode::BadInput, "recipe: model: " + what);
}

void check_trainable(const ModelConfig& c) {
  const bool shares = !c.shares_embedding_of.empty();
  if (!c.tied_embeddings && !shares)
    refuse("the trainer supports only tied embeddings; set tied_embeddings");
  if (c.qkv_bias || c.attn_out_bias || c.mlp_bias) refuse("the trainer does not support biases");
  if (!is_plain(c))
    refuse(
        "found model_type " + c.model_type +
        ", expected llama or mistral: the trainer has no other norms, gates, multipliers or kinds "
        "of layers");
  if (c.rope.type != RopeConfig::Type::Default) refuse("the trainer supports only plain RoPE");
  if (c.dim % 16 || c.hidden_dim % 16 || c.n_outputs() % 16 || c.head_dim % 16) {
    refuse(
        "dim, hidden_dim, head_dim and the number of output tokens must be multiples of 16, "
        "found " +
        std::to_string(c.dim) + ", " + std::to_string(c.hidden_dim) + ", " +
        std::to_string(c.head_dim) + ", " + std::to_string(c.n_outputs()));
  }
  if (c.dim <= 0 || c.hidden_dim <= 0 || c.vocab_size <= 0 || c.head_dim <= 0 || c.head_dim > 256 ||
      c.n_layers <= 0 || c.n_heads <= 0 || c.n_kv_heads <= 0 || c.n_heads % c.n_kv_heads) {
    refuse("sizes must be positive, head_dim at most 256, n_heads a multiple of n_kv_heads");
  }
}

}  // namespace

float initial_weight(std::uint64_t seed, std::int64_t index) {
  const auto position = static_cast<std::uint32_t>(index / 2);
  const auto bits = kernels::philox(seed, {position, kInitStream, 0, 0});
  const double radius = std::sqrt(-2 * std::log(kernels::uniform_from_bits(bits[0])));
  const double angle = 2 * 3.14159265358979323846 * kernels::uniform_from_bits(bits[1]);
  return static_cast<float>(radius * (index % 2 ? std::sin(angle) : std::cos(angle)));
}

ParameterLayout::ParameterLayout(const ModelConfig& c) {
  check_trainable(c);
  const auto take = [this](std::int64_t size) {
    const std::int64_t at = n;
    n += aligned_size(size);
    return at;
  };
  const std::int64_t dim = c.dim, q = std::int64_t{c.n_heads} * c.head_dim;
  const std::int64_t kv = std::int64_t{c.n_kv_heads} * c.head_dim;
  if (c.shares_embedding_of.empty()) embedding = take(c.vocab_size * dim);
  for (int i = 0; i < c.n_layers; i++) {
    LayerAt at{};
    at.attn_norm = take(dim);
    at.qkv = take((q + 2 * kv) * dim);
    at.attn_out = take(dim * q);
    at.mlp_norm = take(dim);
    at.gate_up = take(2 * std::int64_t{c.hidden_dim} * dim);
    at.down = take(dim * c.hidden_dim);
    layers.push_back(at);
  }
  final_norm = take(dim);
}

std::vector<NamedPart> parts_of(const ParameterLayout& layout,
                                const ModelConfig& c,
                                std::span<const int> layer_names) {
  const std::int64_t dim = c.dim, hidden = c.hidden_dim;
  const std::int64_t q = std::int64_t{c.n_heads} * c.head_dim;
  const std::int64_t kv = std::int64_t{c.n_kv_heads} * c.head_dim;
  std::vector<NamedPart> parts;
  if (layout.embedding >= 0)
    parts.push_back({"model.embed_tokens.weight", {c.vocab_size, dim}, layout.embedding});
  for (std::size_t i = 0; i < layout.layers.size(); i++) {
    const LayerAt& at = layout.layers[i];
    const std::string number =
        std::to_string(layer_names.empty() ? static_cast<int>(i) : layer_names[i]);
    const std::string layer = "model.layers." + number + ".";
    parts.push_back({layer + "input_layernorm.weight", {dim}, at.attn_norm});
    parts.push_back({layer + "self_attn.q_proj.weight", {q, dim}, at.qkv});
    parts.push_back({layer + "self_attn.k_proj.weight", {kv, dim}, at.qkv + q * dim});
    parts.push_back({layer + "self_attn.v_proj.weight", {kv, dim}, at.qkv + (q + kv) * dim});
    parts.push_back({layer + "self_attn.o_proj.weight", {dim, q}, at.attn_out});
    parts.push_back({layer + "post_attention_layernorm.weight", {dim}, at.mlp_norm});
    parts.push_back({layer + "mlp.gate_proj.weight", {hidden, dim}, at.gate_up});
    parts.push_back({layer + "mlp.up_proj.weight", {hidden, dim}, at.gate_up + hidden * dim});
    parts.push_back({layer + "mlp.down_proj.weight", {dim, hidden}, at.down});
  }
  parts.push_back({"model.norm.weight", {dim}, layout.final_norm});
  return parts;
}

std::vector<ParameterRun> runs_of(const std::vector<NamedPart>& parts, std::int64_t n) {
  std::vector<ParameterRun> runs;
  for (const NamedPart& part : parts) {
    const bool decays = part.shape.size() > 1;
    if (!runs.empty()) runs.back().end = part.at;
    if (runs.empty() || runs.back().decays != decays) runs.push_back({part.at, part.at, decays});
  }
  runs.back().end = n;
  return runs;
}

std::vector<ParameterRun> runs_of(const ParameterLayout& layout, const ModelConfig& config) {
  return runs_of(parts_of(layout, config), layout.n);
}

void initialise(std::vector<float>& parameters,
                const ParameterLayout& layout,
                const ModelConfig& config,
                float deviation,
                std::uint64_t seed) {
  parameters.assign(static_cast<std::size_t>(layout.n), 0.0f);
  const float into_stream = deviation / std::sqrt(2.0f * static_cast<float>(config.n_layers));
  for (const NamedPart& part : parts_of(layout, config)) {
    const bool writes_to_stream = part.name.find("o_proj") != std::string::npos ||
                                  part.name.find("down_proj") != std::string::npos;
    const float scale = writes_to_stream ? into_stream : deviation;
    std::int64_t size = 1;
    for (const std::int64_t d : part.shape) size *= d;
    for (std::int64_t i = part.at; i < part.at + size; i++) {
      parameters[static_cast<std::size_t>(i)] =
          part.shape.size() == 1 ? 1.0f : scale * initial_weight(seed, i);
    }
  }
}

std::shared_ptr<const TensorSource> as_tensors(const std::vector<float>& parameters,
                                               const ModelConfig& config) {
  return as_tensors(parameters, parts_of(ParameterLayout(config), config));
}

std::shared_ptr<const TensorSource> as_tensors(const std::vector<float>& parameters,
                                               std::vector<NamedPart> parts) {
  return std::make_shared<ParameterSource>(parameters, std::move(parts));
}

void load_tensors(const TensorSource& source,
                  const ModelConfig& config,
                  std::vector<float>& parameters,
                  std::span<const int> from_layers) {
  const ParameterLayout layout(config);
  parameters.assign(static_cast<std::size_t>(layout.n), 0.0f);
  for (const NamedPart& part : parts_of(layout, config, from_layers)) {
    const Tensor tensor = source.read(part.name);
    if (tensor.shape != part.shape) {
      throw Error(ErrorCode::BadInput,
                  source.path() + ": " + part.name + ": shape is not the recipe's");
    }
    float* to = parameters.data() + part.at;
    for (std::int64_t i = 0; i < tensor.n_elements(); i++) {
      switch (tensor.dtype) {
        case kernels::DType::F32:
          to[i] = static_cast<const float*>(tensor.data)[i];
          break;
        case kernels::DType::F16:
          to[i] = kernels::f32_from_f16(static_cast<const std::uint16_t*>(tensor.data)[i]);
          break;
        case kernels::DType::BF16:
          to[i] = kernels::f32_from_bf16(static_cast<const std::uint16_t*>(tensor.data)[i]);
          break;
        default:
          kernels::throw_contract_error("parameters: a tensor is quantised");
      }
    }
  }
}

}  // namespace engine
