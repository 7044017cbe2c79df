#include "engine/checkpoint/families/read_family.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/families/architectures.h"

namespace engine {
namespace {

constexpr std::array<FamilyDefaults, 9> kDefaults = {{
    {"llama", 0, 2048, 0, 1e-6, false, 1e4},
    {"mistral", 8, 131'072, 0, 1e-6, false, 1e4},
    {"qwen2", 32, 32'768, 0, 1e-6, false, 1e4},
    {"qwen3", 32, 32'768, 128, 1e-6, false, 1e4},
    {"smollm3", 4, 32'768, 0, 1e-6, true, 2e6},
    {"phi3", 0, 4096, 0, 1e-5, false, 1e4},
    {"granite", 0, 2048, 0, 1e-6, false, 1e4},
    {"gemma2", 4, 8192, 256, 1e-6, true, 1e4},
    {"gemma3_text", 4, 131'072, 256, 1e-6, true, 1e6},
}};

constexpr double kMaxMultiplier = 1e6;

bool is_qwen(const std::string& type) {
  return is_one_of(type, {"qwen2", "qwen3"});
}

// ---- blocks

void read_gate(const Fields& fields, ModelConfig& config) {
  const bool gelu = is_gemma(config.model_type);
  const char* name = gelu ? "hidden_activation" : "hidden_act";
  const std::string found = fields.string(name).value_or(gelu ? "gelu_pytorch_tanh" : "silu");
  // "swish" is another name of silu; "gelu_new" is the same formula as gelu_pytorch_tanh.
  const bool known = gelu ? is_one_of(found, {"gelu_pytorch_tanh", "gelu_new"})
                          : is_one_of(found, {"silu", "swish"});
  if (!known) fields.fail(name, in_quotes(found), gelu ? "\"gelu_pytorch_tanh\"" : "\"silu\"");
  if (gelu) config.gate = kernels::Gate::GeluTanh;
}

void read_biases(const Fields& fields, ModelConfig& config) {
  const std::string& type = config.model_type;
  if (is_one_of(type, {"llama", "qwen3", "smollm3", "granite", "gemma2", "gemma3_text"}))
    config.qkv_bias = config.attn_out_bias = fields.boolean("attention_bias", false);
  if (is_one_of(type, {"llama", "smollm3", "granite"}))
    config.mlp_bias = fields.boolean("mlp_bias", false);
  if (type == "qwen2") config.qkv_bias = true;
}

void read_granite(const Fields& fields, ModelConfig& config) {
  const auto factor = [&](const char* name) { return fields.real(name, 0, kMaxMultiplier, 1.0); };
  config.embedding_multiplier = static_cast<float>(factor("embedding_multiplier"));
  config.residual_multiplier = static_cast<float>(factor("residual_multiplier"));
  config.attention_scale = factor("attention_multiplier");
  config.logits_scaling = static_cast<float>(factor("logits_scaling"));
}

/// Reads a softcap; null in the file means none (0).
float softcap(const Fields& fields, const char* name, double fallback) {
  if (fields.has(name) && !fields.find(name)) return 0;
  if (!fields.has(name)) return static_cast<float>(fallback);
  return static_cast<float>(fields.real(name, 0, kMaxMultiplier));
}

void read_gemma(const Fields& fields, ModelConfig& config) {
  if (fields.boolean("use_bidirectional_attention", false))
    fields.fail("use_bidirectional_attention", "true", "false: this program generates text");
  config.norm_offset = 1;
  config.post_norms = true;
  config.embedding_multiplier = static_cast<float>(std::sqrt(double{1} * config.dim));
  config.attention_scale =
      1 / std::sqrt(fields.real("query_pre_attn_scalar", 0, kMaxMultiplier, 256.0));
  const bool caps = config.model_type == "gemma2";
  // transformers' Gemma 3 does not apply attn_logit_softcapping.
  if (caps) config.attention_softcap = softcap(fields, "attn_logit_softcapping", 50);
  config.logit_softcap = softcap(fields, "final_logit_softcapping", caps ? 30 : 0);
}

// ---- layers

/// Reads from layer_types which layers are local.
void read_layer_types(const Fields& fields, const Json& types, ModelConfig& config) {
  const std::string expected =
      fmt::format("{} of full_attention or sliding_attention", config.n_layers);
  if (!types.is(JsonReader::Kind::Array)) fields.fail("layer_types", types.shown(), expected);
  if (types.items.size() != static_cast<std::size_t>(config.n_layers))
    fields.fail("layer_types", fmt::format("{} entries", types.items.size()), expected);
  config.layer_kinds.resize(types.items.size());
  for (std::size_t layer = 0; layer < types.items.size(); layer++) {
    const Json& type = types.items[layer];
    const bool is_full = type.text == "full_attention";
    if (!type.is(JsonReader::Kind::String) || (!is_full && type.text != "sliding_attention"))
      fields.fail("layer_types", fmt::format("{} for layer {}", type.shown(), layer), expected);
    config.layer_kinds[layer].local = !is_full;
  }
}

/// Reads which layers of SmolLM3 have RoPE: from a list if the file has one, else all layers but every n-th.
void read_rotated(const Fields& fields, ModelConfig& config) {
  const Json* list = fields.find("no_rope_layers");
  const auto n = static_cast<std::size_t>(config.n_layers);
  const auto interval =
      static_cast<std::size_t>(fields.integer("no_rope_layer_interval", 1, 1 << 20, 4));
  const std::string expected = fmt::format("{} of 0 (no RoPE) or 1", n);
  if (list && (!list->is(JsonReader::Kind::Array) || list->items.size() < n))
    fields.fail("no_rope_layers", list->shown(), expected);
  config.layer_kinds.resize(n);
  for (std::size_t layer = 0; layer < n; layer++) {
    bool& rotated = config.layer_kinds[layer].rotated;
    rotated = (layer + 1) % interval != 0;
    if (!list) continue;
    const Json& item = list->items[layer];
    const bool is_number = item.is(JsonReader::Kind::Number);
    const double value = is_number ? item.number().real() : -1;
    if (value != 0 && value != 1) fields.fail("no_rope_layers", item.shown(), expected);
    rotated = value == 1;
  }
}

/// Decides which layers are local if the file has no layer_types.
void set_local_layers(const Fields& fields, ModelConfig& config) {
  const int n = config.n_layers;
  if (is_qwen(config.model_type)) {
    constexpr int kDefaultFullLayers = 28;
    const auto n_full = fields.integer("max_window_layers", 0, 1 << 20, kDefaultFullLayers);
    config.layer_kinds = global_then_local(static_cast<int>(n_full), n);
  }
  if (is_gemma(config.model_type)) {
    const bool every_second = config.model_type == "gemma2";
    const int period = static_cast<int>(
        every_second ? 2 : fields.integer("sliding_window_pattern", 1, 1 << 20, 6));
    config.layer_kinds.resize(static_cast<std::size_t>(n));
    for (int layer = 0; layer < n; layer++)
      config.layer_kinds[static_cast<std::size_t>(layer)].local = (layer + 1) % period != 0;
  }
  if (config.model_type == "smollm3")
    for (LayerKind& kind : config.layer_kinds) kind.local = !kind.rotated;
}

/// Reads the length of the sliding window; 0: full attention.
int read_window(const Fields& fields,
                const ModelConfig& config,
                std::vector<std::string>& notices) {
  const std::string& type = config.model_type;
  const bool has_switch = is_qwen(type) || type == "smollm3";
  if (is_one_of(type, {"llama", "granite"}) ||
      (has_switch && !fields.boolean("use_sliding_window", false)))
    return 0;
  const bool has_default = !is_one_of(type, {"smollm3", "phi3"});
  if (!fields.find("sliding_window") && (fields.has("sliding_window") || !has_default)) return 0;
  constexpr std::int64_t kDefaultWindow = 4096;  // the default of every family that has a default
  constexpr std::int64_t kMaxWindow = std::int64_t{1} << 40;
  const std::int64_t window = fields.integer("sliding_window", 1, kMaxWindow, kDefaultWindow);
  if (window <= config.max_seq_len) return static_cast<int>(window);
  notices.push_back(
      fmt::format("{}: sliding_window {} is longer than the context {}: treated as full attention",
                  escaped(fields.file()), window, config.max_seq_len));
  return 0;
}

}  // namespace

const FamilyDefaults& defaults_of(const std::string& model_type) {
  const auto* found = std::ranges::find(kDefaults, model_type, &FamilyDefaults::model_type);
  ensure(found != kDefaults.end(), "defaults_of: model_type must be known");
  return *found;
}

void read_blocks(const Fields& fields, ModelConfig& config) {
  const std::string& type = config.model_type;
  config.norm_eps =
      static_cast<float>(fields.real("rms_norm_eps", 1e-20, 0.1, defaults_of(type).norm_eps));
  config.head_norm_eps = config.norm_eps;
  read_gate(fields, config);
  read_biases(fields, config);
  config.qk_norm = is_one_of(type, {"qwen3", "gemma3_text"});
  config.fused_projections = type == "phi3";
  if (type == "granite") read_granite(fields, config);
  if (is_gemma(type)) read_gemma(fields, config);
  config.head_norm_offset = config.norm_offset;
}

void read_layers(const Fields& fields, ModelConfig& config, std::vector<std::string>& notices) {
  config.sliding_window = read_window(fields, config, notices);
  const bool has_rotated = config.model_type == "smollm3";
  const bool has_kinds = config.sliding_window > 0 || config.local_rope.has_value() || has_rotated;
  if (!has_kinds) return;
  if (has_rotated) read_rotated(fields, config);
  const Json* types = fields.find("layer_types");
  if (types && (config.sliding_window > 0 || config.local_rope))
    read_layer_types(fields, *types, config);
  else
    set_local_layers(fields, config);
  const auto is_local = [](const LayerKind& kind) { return kind.local; };
  if (!config.layer_kinds.empty() && std::ranges::none_of(config.layer_kinds, is_local))
    config.sliding_window = 0;
}

std::vector<std::string> members_of_family(const std::string& type) {
  std::vector<std::string> read;
  const auto add = [&read](std::initializer_list<const char*> more) {
    read.insert(read.end(), more.begin(), more.end());
  };
  if (is_one_of(type, {"llama", "smollm3", "granite"})) add({"attention_bias", "mlp_bias"});
  if (type == "qwen3" || is_gemma(type)) add({"attention_bias"});
  if (is_one_of(type, {"mistral", "phi3"}) || is_gemma(type)) add({"sliding_window"});
  if (is_qwen(type))
    add({"use_sliding_window", "sliding_window", "max_window_layers", "layer_types"});
  if (type == "smollm3")
    add({"use_sliding_window", "sliding_window", "layer_types", "no_rope_layers",
         "no_rope_layer_interval", "max_window_layers"});
  if (type == "phi3") add({"original_max_position_embeddings"});
  if (type == "granite")
    add({"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"});
  if (is_gemma(type))
    add({"hidden_activation", "query_pre_attn_scalar", "final_logit_softcapping", "layer_types",
         "use_bidirectional_attention"});
  if (type == "gemma2") add({"attn_logit_softcapping"});
  if (type == "gemma3_text")
    add({"sliding_window_pattern", "_sliding_window_pattern", "rope_local_base_freq"});
  return read;
}

}  // namespace engine
