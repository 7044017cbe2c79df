#include "engine/checkpoint/config_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/config_keys.h"
#include "engine/checkpoint/rope_fields.h"

namespace engine {
namespace {

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
  // The spelling of early LLaMA conversions.
  const bool is_old_llama = *type == "llama" && first.text == "LLaMAForCausalLM";
  if (is_old_llama) return *family;
  if (!first.is(JsonReader::Kind::String) || first.text != family->architecture) {
    fields.fail("architectures", first.shown(),
                fmt::format("{} for model_type {}; supported are {}", family->architecture,
                            family->model_type, kFamilyNames));
  }
  return *family;
}

// The number of KV heads if the field is absent: the default of transformers' classes. A null in
// the file means no grouped-query attention.
int default_kv_heads(const Fields& fields, const ModelConfig& config) {
  const bool is_null = fields.has("num_key_value_heads");
  if (is_null || config.model_type == "llama") return config.n_heads;
  return config.model_type == "mistral" ? 8 : 32;
}

// The default of transformers' classes for max_position_embeddings.
int default_positions(const std::string& model_type) {
  if (model_type == "llama") return 2048;
  return model_type == "mistral" ? 131'072 : 32'768;
}

/// Sets the context length; a requested length takes precedence.
/// @param context  as in read_config()
void set_context(int context, const Fields& fields, const FileLimits& limits, ConfigFile& file) {
  if (!fields.find("max_position_embeddings"))
    file.notices.push_back(fmt::format(
        "{}: no max_position_embeddings: using {}, the default of transformers for {}",
        escaped(fields.file()), file.config.max_position_embeddings, file.config.model_type));
  if (context == 0) return;
  if (context > limits.max_seq_len)
    throw Error(ErrorCode::Usage,
                fmt::format("--context: found {}, expected at most {}; --limit max_seq_len={} "
                            "allows it",
                            context, limits.max_seq_len, context));
  if (context > file.config.max_seq_len)
    file.notices.push_back(fmt::format(
        "{}: the context is set to {} positions, more than the model's {}: output there may be "
        "poor",
        escaped(fields.file()), context, file.config.max_seq_len));
  file.config.max_seq_len = context;
}

void read_shape(const Fields& fields, const FileLimits& limits, ModelConfig& config) {
  config.dim = static_cast<int>(fields.integer("hidden_size", 1, limits.dim));
  config.hidden_dim = static_cast<int>(fields.integer("intermediate_size", 1, limits.hidden_dim));
  config.n_layers = static_cast<int>(fields.integer("num_hidden_layers", 1, limits.n_layers));
  config.vocab_size = static_cast<int>(fields.integer("vocab_size", 1, limits.vocab_size));
  config.max_seq_len = static_cast<int>(fields.integer(
      "max_position_embeddings", 1, limits.max_seq_len, default_positions(config.model_type)));
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

// layer_types must be "full" for the first layers and "sliding" for the rest, the only pattern that
// max_window_layers can express.
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
  // null means full attention.
  if (fields.has("sliding_window") && !fields.find("sliding_window")) return;
  constexpr std::int64_t kDefaultWindow = 4096;  // in both families
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

std::int64_t whole_id(const Fields& fields, const char* name, const Json& value) {
  const std::optional<std::int64_t> id =
      value.is(JsonReader::Kind::Number) ? value.number().integer() : std::nullopt;
  if (!id) fields.fail(name, value.shown(), "a token id");
  return *id;
}

void read_special_ids(const Fields& fields, ConfigFile& file) {
  ModelConfig& config = file.config;
  // Older files write -1 if the model has no such token.
  const auto one = [&](const char* name) -> std::optional<TokenId> {
    const Json* value = fields.find(name);
    if (!value) return std::nullopt;
    const std::int64_t id = whole_id(fields, name, *value);
    if (id == -1) return std::nullopt;
    if (id < 0 || id >= config.vocab_size)
      fields.fail(name, std::to_string(id),
                  fmt::format("a token id below vocab_size ({})", config.vocab_size));
    return static_cast<TokenId>(id);
  };
  config.bos_id = one("bos_token_id");
  config.pad_id = one("pad_token_id");
  if (const auto ids = end_ids(fields, config.vocab_size, file.notices)) config.eos_ids = *ids;
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

/// The members used for this family.
std::vector<std::string> members_read(const ModelConfig& config) {
  std::vector<std::string> read = {
      "model_type",   "architectures",     "hidden_size",         "intermediate_size",
      "vocab_size",   "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
      "head_dim",     "hidden_act",        "rms_norm_eps",        "max_position_embeddings",
      "rope_theta",   "rope_scaling",      "rope_parameters",     "partial_rotary_factor",
      "bos_token_id", "eos_token_id",      "pad_token_id",        "tie_word_embeddings",
      "dtype",        "torch_dtype",       "quantization_config"};
  const auto add = [&read](std::initializer_list<const char*> more) {
    read.insert(read.end(), more.begin(), more.end());
  };
  if (config.model_type == "llama") add({"attention_bias", "mlp_bias"});
  if (config.model_type == "mistral") add({"sliding_window"});
  if (config.model_type == "qwen2")
    add({"use_sliding_window", "sliding_window", "max_window_layers", "layer_types"});
  using Type = RopeConfig::Type;
  if (config.rope.type == Type::Yarn || config.rope.type == Type::Llama3 ||
      config.rope.type == Type::Longrope)
    add({"original_max_position_embeddings"});
  return read;
}

/// True if all layers have full attention. layer_types then has no effect on families that do not
/// support it.
bool all_layers_full(const Json& types) {
  return types.is(JsonReader::Kind::Array) &&
         std::ranges::all_of(types.items, [](const Json& t) { return t.text == "full_attention"; });
}

void note_members_without_effect(const Json& json, const std::string& path, ConfigFile& file) {
  std::vector<std::string> read = members_read(file.config);
  if (const Json* types = json.find("layer_types"); types && all_layers_full(*types))
    read.emplace_back("layer_types");
  const std::vector<std::string> names = members_without_effect(json, read);
  if (names.empty()) return;
  file.notices.push_back(fmt::format("{}: {}: ignored, has no effect for {}", escaped(path),
                                     fmt::join(names, ", "), file.config.model_type));
}

}  // namespace

std::optional<std::vector<TokenId>> end_ids(const Fields& fields,
                                            int vocab_size,
                                            std::vector<std::string>& notices) {
  constexpr const char* kName = "eos_token_id";
  const Json* value = fields.find(kName);
  const bool is_list = value && value->is(JsonReader::Kind::Array);
  if (!value || (is_list && value->items.empty())) return std::nullopt;
  std::vector<TokenId> ids;
  for (const Json& item : is_list ? std::span(value->items) : std::span(value, 1)) {
    const std::int64_t id = whole_id(fields, kName, item);
    if (id >= 0 && id < vocab_size) {
      ids.push_back(static_cast<TokenId>(id));
      continue;
    }
    notices.push_back(fmt::format("{}: {}: {} is not an id of the vocabulary ({}): ignored",
                                  escaped(fields.file()), kName, id, vocab_size));
  }
  return ids;
}

ConfigFile read_config(const std::string& path,
                       bool needs_architectures,
                       const FileLimits& limits,
                       int context) {
  // Outside a model directory the path may be a pipe.
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
  if (activation != "silu" && activation != "swish")  // two names of the same function
    fields.fail("hidden_act", in_quotes(activation), "\"silu\"");
  config.tied_embeddings = fields.boolean("tie_word_embeddings", false);
  if (config.model_type == "llama") {
    config.qkv_bias = config.attn_out_bias = fields.boolean("attention_bias", false);
    config.mlp_bias = fields.boolean("mlp_bias", false);
  }
  if (config.model_type == "qwen2") config.qkv_bias = true;
  read_rope(fields, limits, config, file.notices);
  set_context(context, fields, limits, file);
  read_window(fields, file);
  read_special_ids(fields, file);
  file.dtype = read_dtype(fields);
  note_members_without_effect(json, path, file);
  return file;
}

ModelConfig read_model_config(const std::string& path, const FileLimits& limits) {
  return read_config(path, false, limits).config;
}

}  // namespace engine
