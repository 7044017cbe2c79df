#include "engine/model/config_file.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "engine/model/fields.h"
#include "engine/model/json.h"
#include "engine/model/model_files.h"
#include "engine/model/refuse.h"

namespace engine {
namespace {

constexpr std::int64_t kMaxTokenId = std::numeric_limits<TokenId>::max();
constexpr double kMaxRopeTheta = 1e12;

struct Family {
  const char* model_type;
  const char* architecture;
};
constexpr std::array<Family, 3> kFamilies = {{{"llama", "LlamaForCausalLM"},
                                              {"mistral", "MistralForCausalLM"},
                                              {"qwen2", "Qwen2ForCausalLM"}}};
constexpr const char* kFamilyNames =
    "llama (LlamaForCausalLM), mistral (MistralForCausalLM) or qwen2 (Qwen2ForCausalLM)";

const Family& family_of(const Fields& fields, bool needs_architectures) {
  const std::optional<std::string> type = fields.string("model_type");
  if (!type) fields.fail("model_type", "none", kFamilyNames);
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const Family& f) { return *type == f.model_type; });
  if (family == kFamilies.end()) fields.fail("model_type", in_quotes(*type), kFamilyNames);

  const Json* architectures = fields.find("architectures");
  if (!architectures) {
    if (needs_architectures) fields.fail("architectures", "none", kFamilyNames);
    return *family;
  }
  if (!architectures->is(JsonReader::Kind::Array) || architectures->items.empty()) {
    fields.fail("architectures", architectures->shown(), kFamilyNames);
  }
  const Json& first = architectures->items[0];
  if (!first.is(JsonReader::Kind::String) || first.text != family->architecture) {
    fields.fail("architectures", first.shown(),
                fmt::format("{} for model_type {}; supported are {}", family->architecture,
                            family->model_type, kFamilyNames));
  }
  return *family;
}

// What transformers' classes take when the field is absent; an explicit null is no grouping.
int default_kv_heads(const Fields& fields, const ModelConfig& config) {
  const bool is_null = fields.has("num_key_value_heads");
  if (is_null || config.model_type == "llama") return config.n_heads;
  return config.model_type == "mistral" ? 8 : 32;
}

void read_shape(const Fields& fields, const FileLimits& limits, ModelConfig& config) {
  config.dim = static_cast<int>(fields.integer("hidden_size", 1, limits.dim));
  config.hidden_dim = static_cast<int>(fields.integer("intermediate_size", 1, limits.hidden_dim));
  config.n_layers = static_cast<int>(fields.integer("num_hidden_layers", 1, limits.n_layers));
  config.vocab_size = static_cast<int>(fields.integer("vocab_size", 1, limits.vocab_size));
  config.max_seq_len =
      static_cast<int>(fields.integer("max_position_embeddings", 1, limits.max_seq_len));
  config.n_heads = static_cast<int>(fields.integer("num_attention_heads", 1, limits.n_heads));
  config.n_kv_heads = static_cast<int>(
      fields.integer("num_key_value_heads", 1, limits.n_heads, default_kv_heads(fields, config)));
  if (config.n_heads % config.n_kv_heads != 0) {
    fields.fail("num_key_value_heads", std::to_string(config.n_kv_heads),
                fmt::format("a divisor of num_attention_heads ({})", config.n_heads));
  }
  if (fields.find("head_dim")) {
    config.head_dim = static_cast<int>(fields.integer("head_dim", 2, limits.dim));
  } else if (config.dim % config.n_heads != 0) {
    fields.fail("hidden_size", std::to_string(config.dim),
                fmt::format("a multiple of num_attention_heads ({}), or an explicit head_dim",
                            config.n_heads));
  } else {
    config.head_dim = config.dim / config.n_heads;
  }
  if (config.head_dim % 2 != 0) {
    fields.fail("head_dim", std::to_string(config.head_dim), "an even number (rotary pairs)");
  }
  if (std::int64_t{config.n_heads} * config.head_dim > limits.hidden_dim) {
    fields.fail("head_dim", std::to_string(config.head_dim),
                fmt::format("num_attention_heads x head_dim of at most {}", limits.hidden_dim));
  }
}

RopeConfig::Type rope_type_of(const Fields& rope) {
  std::optional<std::string> name = rope.string("rope_type");
  const char* field = name ? "rope_type" : "type";
  if (!name) name = rope.string("type");
  if (!name || *name == "default") return RopeConfig::Type::Default;
  if (*name == "linear") return RopeConfig::Type::Linear;
  if (*name == "dynamic") return RopeConfig::Type::Dynamic;
  if (*name == "yarn") return RopeConfig::Type::Yarn;
  if (*name == "llama3") return RopeConfig::Type::Llama3;
  rope.fail(field, in_quotes(*name), "default, linear, dynamic, yarn or llama3");
}

void read_rope_scaling(const Fields& rope, const FileLimits& limits, ModelConfig& config) {
  using Type = RopeConfig::Type;
  constexpr double kMaxFactor = 1e6;
  RopeConfig& out = config.rope;
  out.type = rope_type_of(rope);
  if (rope.real("partial_rotary_factor", 0, 1, 1.0) < 1) {
    rope.fail("partial_rotary_factor", "less than 1", "1 (all dimensions are rotated)");
  }
  if (out.type == Type::Default) return;
  const auto original = [&](std::optional<std::int64_t> fallback) {
    return static_cast<int>(
        rope.integer("original_max_position_embeddings", 1, limits.max_seq_len, fallback));
  };
  if (out.type == Type::Yarn) {
    // transformers derives a missing factor from the two lengths.
    out.original_max_seq_len = original(config.max_seq_len);
    const double implied = double{1} * config.max_seq_len / out.original_max_seq_len;
    out.factor = rope.real("factor", 0, kMaxFactor, std::max(implied, 1.0));
    out.attention_factor = rope.real("attention_factor", 0, kMaxFactor, 0.0);
    out.beta_fast = rope.real("beta_fast", 0, kMaxFactor, 32.0);
    out.beta_slow = rope.real("beta_slow", 0, kMaxFactor, 1.0);
    if (out.beta_fast < out.beta_slow) {
      rope.fail("beta_fast", fmt::format("{}", out.beta_fast),
                fmt::format("at least beta_slow ({})", out.beta_slow));
    }
    // Zero is how some files say "absent".
    const auto magnitude = [&](const char* name) {
      const Json* value = rope.find(name);
      const bool is_zero =
          value && value->is(JsonReader::Kind::Number) && value->number().real() == 0;
      return is_zero ? 0.0 : rope.real(name, 0, kMaxFactor, 0.0);
    };
    out.mscale = magnitude("mscale");
    out.mscale_all_dim = magnitude("mscale_all_dim");
    out.truncate = rope.boolean("truncate", true);
    return;
  }
  out.factor = rope.real("factor", 0, kMaxFactor);
  if (out.type == Type::Dynamic) out.original_max_seq_len = original(config.max_seq_len);
  if (out.type == Type::Llama3) {
    out.original_max_seq_len = original(std::nullopt);
    out.low_freq_factor = rope.real("low_freq_factor", 0, kMaxFactor);
    out.high_freq_factor = rope.real("high_freq_factor", 0, kMaxFactor);
    if (out.high_freq_factor <= out.low_freq_factor) {
      rope.fail("high_freq_factor", fmt::format("{}", out.high_freq_factor),
                fmt::format("more than low_freq_factor ({})", out.low_freq_factor));
    }
  }
}

// transformers 5: rope_parameters with rope_theta inside; 4: rope_theta beside rope_scaling.
void read_rope(const Fields& fields, const FileLimits& limits, ModelConfig& config) {
  const bool is_new = fields.find("rope_parameters") != nullptr;
  const char* name = is_new ? "rope_parameters" : "rope_scaling";
  config.rope.theta = fields.real("rope_theta", 0, kMaxRopeTheta, 10000.0);
  if (fields.real("partial_rotary_factor", 0, 1, 1.0) < 1) {
    fields.fail("partial_rotary_factor", "less than 1", "1 (all dimensions are rotated)");
  }
  const Json* scaling = fields.find(name);
  if (!scaling) return;
  const Fields rope(*scaling, fields.file(), std::string(name) + ".");
  config.rope.theta = rope.real("rope_theta", 0, kMaxRopeTheta, config.rope.theta);
  read_rope_scaling(rope, limits, config);
}

// layer_types must be "full" for some first layers and "sliding" for the rest, which is all that
// max_window_layers could say.
void read_layer_types(const Fields& fields, const Json& types, ModelConfig& config) {
  const std::string expected = fmt::format(
      "{} of full_attention or sliding_attention, the full ones first", config.n_layers);
  if (!types.is(JsonReader::Kind::Array)) fields.fail("layer_types", types.shown(), expected);
  if (types.items.size() != static_cast<std::size_t>(config.n_layers)) {
    fields.fail("layer_types", fmt::format("{} entries", types.items.size()), expected);
  }
  int n_full = 0;
  for (int layer = 0; layer < config.n_layers; layer++) {
    const Json& type = types.items[static_cast<std::size_t>(layer)];
    const bool is_full = type.text == "full_attention" && n_full == layer;
    if (is_full) n_full++;
    if (!type.is(JsonReader::Kind::String) || (!is_full && type.text != "sliding_attention")) {
      fields.fail("layer_types", fmt::format("{} for layer {}", type.shown(), layer), expected);
    }
  }
  config.n_full_layers = n_full;
  if (n_full == config.n_layers) config.sliding_window = 0;
}

void read_window(const Fields& fields, ConfigFile& file) {
  ModelConfig& config = file.config;
  const bool is_qwen = config.model_type == "qwen2";
  if (config.model_type == "llama" || (is_qwen && !fields.boolean("use_sliding_window", false))) {
    return;
  }
  if (fields.has("sliding_window") && !fields.find("sliding_window")) return;  // null: full
  constexpr std::int64_t kDefaultWindow = 4096;                                // of both families
  constexpr std::int64_t kMaxWindow = std::int64_t{1} << 40;
  const std::int64_t window = fields.integer("sliding_window", 1, kMaxWindow, kDefaultWindow);
  if (window > config.max_seq_len) {
    file.notices.push_back(fmt::format(
        "{}: sliding_window {} is longer than the context {}: treated as full attention",
        escaped(fields.file()), window, config.max_seq_len));
    return;
  }
  config.sliding_window = static_cast<int>(window);
  if (const Json* types = fields.find("layer_types")) {
    read_layer_types(fields, *types, config);
  } else if (is_qwen) {
    constexpr int kDefaultFullLayers = 28;
    config.n_full_layers =
        static_cast<int>(fields.integer("max_window_layers", 0, 1 << 20, kDefaultFullLayers));
    if (config.n_full_layers >= config.n_layers) {
      config.n_full_layers = 0;
      config.sliding_window = 0;
    }
  }
}

TokenId token_id(const Fields& fields, const char* name, const Json& value) {
  const std::optional<std::int64_t> id =
      value.is(JsonReader::Kind::Number) ? value.number().integer() : std::nullopt;
  if (!id || *id < 0 || *id > kMaxTokenId) fields.fail(name, value.shown(), "a token id");
  return static_cast<TokenId>(*id);
}

std::vector<TokenId> token_ids(const Fields& fields, const char* name) {
  const Json* value = fields.find(name);
  if (!value) return {};
  if (!value->is(JsonReader::Kind::Array)) return {token_id(fields, name, *value)};
  std::vector<TokenId> ids;
  for (const Json& item : value->items) ids.push_back(token_id(fields, name, item));
  return ids;
}

void read_special_ids(const Fields& fields, ModelConfig& config) {
  if (const Json* bos = fields.find("bos_token_id")) {
    config.bos_id = token_id(fields, "bos_token_id", *bos);
  }
  // -1 is an old way to write "no padding".
  const std::int64_t pad = fields.integer("pad_token_id", -1, kMaxTokenId, -1);
  if (pad >= 0) config.pad_id = static_cast<TokenId>(pad);
  config.eos_ids = token_ids(fields, "eos_token_id");
  const auto check = [&](const char* name, TokenId id) {
    if (id < config.vocab_size) return;
    fields.fail(name, std::to_string(id), fmt::format("below vocab_size ({})", config.vocab_size));
  };
  if (config.bos_id) check("bos_token_id", *config.bos_id);
  if (config.pad_id) check("pad_token_id", *config.pad_id);
  for (const TokenId id : config.eos_ids) check("eos_token_id", id);
}

std::optional<kernels::DType> read_dtype(const Fields& fields) {
  std::optional<std::string> name = fields.string("dtype");
  if (!name) name = fields.string("torch_dtype");
  if (!name) return std::nullopt;
  if (*name == "float32") return kernels::DType::F32;
  if (*name == "float16") return kernels::DType::F16;
  if (*name == "bfloat16") return kernels::DType::BF16;
  return std::nullopt;
}

void refuse_quantized(const Fields& fields) {
  const Json* quantization = fields.find("quantization_config");
  if (!quantization) return;
  const Json* method = quantization->find("quant_method");
  fields.fail("quantization_config.quant_method", method ? method->shown() : "none",
              "no quantization_config: quantised weights are not supported");
}

}  // namespace

ConfigFile read_config(const std::string& path,
                       bool needs_architectures,
                       const FileLimits& limits) {
  // Without a directory around it the config is a file of the person's own, perhaps a pipe.
  const Json json =
      needs_architectures ? read_json_file(path, limits) : read_json_input(path, limits);
  const Fields fields(json, path);
  ConfigFile file;
  ModelConfig& config = file.config;
  config.model_type = family_of(fields, needs_architectures).model_type;
  refuse_quantized(fields);
  read_shape(fields, limits, config);
  config.norm_eps = static_cast<float>(fields.real("rms_norm_eps", 1e-20, 0.1, 1e-6));
  const std::string activation = fields.string("hidden_act").value_or("silu");
  if (activation != "silu") fields.fail("hidden_act", in_quotes(activation), "\"silu\"");
  config.tied_embeddings = fields.boolean("tie_word_embeddings", false);
  if (config.model_type == "llama") {
    config.qkv_bias = config.attn_out_bias = fields.boolean("attention_bias", false);
    config.mlp_bias = fields.boolean("mlp_bias", false);
  }
  if (config.model_type == "qwen2") config.qkv_bias = true;
  read_rope(fields, limits, config);
  read_window(fields, file);
  read_special_ids(fields, config);
  file.dtype = read_dtype(fields);
  return file;
}

ModelConfig read_model_config(const std::string& path, const FileLimits& limits) {
  return read_config(path, false, limits).config;
}

void read_generation_config(const std::string& path, ConfigFile& file, const FileLimits& limits) {
  const Json json = read_json_file(path, limits);
  const Fields fields(json, path);
  const std::vector<TokenId> ids = token_ids(fields, "eos_token_id");
  for (const TokenId id : ids) {
    if (id < file.config.vocab_size) continue;
    fields.fail("eos_token_id", std::to_string(id),
                fmt::format("below vocab_size ({})", file.config.vocab_size));
  }
  if (!ids.empty()) file.config.eos_ids = ids;
}

}  // namespace engine
