#include "engine/checkpoint/config_file.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/config_keys.h"
#include "engine/checkpoint/families/architectures.h"
#include "engine/checkpoint/families/read_family.h"
#include "engine/checkpoint/families/rope_fields.h"

namespace engine {
namespace {

const Architecture& architecture_in(const Fields& fields, bool needs_architectures) {
  const std::string expected = architecture_list();
  const std::optional<std::string> type = fields.string("model_type");
  if (!type) fields.fail("model_type", "none", expected);
  const Architecture* architecture = architecture_of_type(*type);
  if (!architecture) fields.fail("model_type", in_quotes(*type), expected);

  const Json* classes = fields.find("architectures");
  if (!classes) {
    if (needs_architectures) fields.fail("architectures", "none", expected);
    return *architecture;
  }
  if (!classes->is(JsonReader::Kind::Array) || classes->items.empty()) {
    fields.fail("architectures", classes->shown(), expected);
  }
  const Json& first = classes->items[0];
  // The spelling of early LLaMA conversions.
  const bool is_old_llama = *type == "llama" && first.text == "LLaMAForCausalLM";
  if (is_old_llama) return *architecture;
  if (!first.is(JsonReader::Kind::String) || first.text != architecture->class_name) {
    fields.fail("architectures", first.shown(),
                fmt::format("{} for model_type {}; supported are {}", architecture->class_name,
                            architecture->model_type, expected));
  }
  return *architecture;
}

// The number of KV heads if the field is absent. A null in the file means no grouped-query attention.
int default_kv_heads(const Fields& fields, const ModelConfig& config) {
  const int n = defaults_of(config.model_type).n_kv_heads;
  return n == 0 || fields.has("num_key_value_heads") ? config.n_heads : n;
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
      "max_position_embeddings", 1, limits.max_seq_len, defaults_of(config.model_type).positions));
  config.n_heads = static_cast<int>(fields.integer("num_attention_heads", 1, limits.n_heads));
  config.n_kv_heads = static_cast<int>(
      fields.integer("num_key_value_heads", 1, limits.n_heads, default_kv_heads(fields, config)));
  if (config.n_heads % config.n_kv_heads != 0) {
    fields.fail("num_key_value_heads", std::to_string(config.n_kv_heads),
                fmt::format("a divisor of num_attention_heads ({})", config.n_heads));
  }
  const int default_head_dim = defaults_of(config.model_type).head_dim;
  if (fields.find("head_dim") || default_head_dim > 0) {
    config.head_dim = static_cast<int>(fields.integer("head_dim", 2, limits.dim, default_head_dim));
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
      "dtype",        "torch_dtype",       "quantization_config", "shares_embedding_of"};
  const std::vector<std::string> more = members_of_family(config.model_type);
  read.insert(read.end(), more.begin(), more.end());
  using Type = RopeConfig::Type;
  if (config.rope.type == Type::Yarn || config.rope.type == Type::Llama3 ||
      config.rope.type == Type::Longrope)
    read.emplace_back("original_max_position_embeddings");
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
  return parse_config(json, path, needs_architectures, limits, context);
}

ConfigFile parse_config(const Json& json,
                        const std::string& path,
                        bool needs_architectures,
                        const FileLimits& limits,
                        int context) {
  const Fields fields(json, path);
  ConfigFile file;
  ModelConfig& config = file.config;
  config.model_type = architecture_in(fields, needs_architectures).model_type;
  const FamilyDefaults& defaults = defaults_of(config.model_type);
  refuse_quantized(fields);
  read_shape(fields, limits, config);
  read_blocks(fields, config);
  config.tied_embeddings = fields.boolean("tie_word_embeddings", defaults.tied_embeddings);
  read_rope(fields, limits, defaults.rope_theta, config, file.notices);
  set_context(context, fields, limits, file);
  read_layers(fields, config, file.notices);
  read_special_ids(fields, file);
  config.shares_embedding_of = fields.string("shares_embedding_of").value_or("");
  file.dtype = read_dtype(fields);
  note_members_without_effect(json, path, file);
  return file;
}

ModelConfig read_model_config(const std::string& path, const FileLimits& limits) {
  return read_config(path, false, limits).config;
}

}  // namespace engine
