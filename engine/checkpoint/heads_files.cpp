#include "engine/checkpoint/heads_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/checkpoint/other_formats.h"
#include "engine/checkpoint/random_weights.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/shared/model_name.h"
#include "engine/checkpoint/shared/target_output.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxHeads = 64, kMaxHeadLayers = 16, kMaxGram = 5;
constexpr double kMaxRopeTheta = 1e12;
constexpr const char* kKinds = "medusa or chimera";

std::string config_path(const std::string& directory) {
  return directory + "/config.json";
}

/// Published Medusa heads have no model_type.
std::optional<HeadsKind> kind_in(const Json& config) {
  const Json* type = config.find("model_type");
  const bool is_absent = !type || type->is(JsonReader::Kind::Null);
  if (is_absent && config.find("medusa_num_heads")) return HeadsKind::Medusa;
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera})
    if (type && type->text == name_of(kind)) return kind;
  return std::nullopt;
}

HeadsKind kind_of(const Json& json, const Fields& fields) {
  if (const auto kind = kind_in(json)) return *kind;
  const OtherFormat other = recognise_heads_config(json);
  const auto type = fields.string("model_type");
  const std::string found = type ? in_quotes(*type) : "none";
  fields.fail("model_type", other.is_known() ? found + ": " + other.found : found,
              other.is_known() ? fmt::format("{}; {}", kKinds, other.advice) : kKinds);
}

void read_encoder(const Fields& fields, const FileLimits& limits, HeadsConfig& config) {
  config.gram = static_cast<int>(fields.integer("gram", 1, kMaxGram));
  config.residual = fields.boolean("residual", true);
  const std::string first = fields.string("first_layer").value_or("frozen");
  if (first != "frozen" && first != "finetuned")
    fields.fail("first_layer", in_quotes(first), "frozen or finetuned");
  config.own_embedding = first == "finetuned";
  const std::string encoder = fields.string("token_encoder").value_or("grams");
  if (encoder != "grams" && encoder != "first_layer")
    fields.fail("token_encoder", in_quotes(encoder), "grams or first_layer");
  config.by_first_layer = encoder == "first_layer";
  if (config.by_first_layer && config.gram != 1)
    fields.fail("gram", std::to_string(config.gram), "1 beside token_encoder first_layer");
  if (config.by_first_layer && config.own_embedding)
    fields.fail("first_layer", in_quotes(first), "frozen beside token_encoder first_layer");
  // Heads whose config.json lacks this member were trained without committed k-grams.
  config.sees_committed_grams = fields.boolean("sees_committed_grams", false);
  config.hidden_dim = static_cast<int>(fields.integer("intermediate_size", 1, limits.hidden_dim));
  config.n_attention_heads =
      static_cast<int>(fields.integer("num_attention_heads", 1, limits.n_heads));
  if (config.dim % config.n_attention_heads != 0 || config.head_dim() % 2 != 0) {
    fields.fail("num_attention_heads", std::to_string(config.n_attention_heads),
                fmt::format("a divisor of hidden_size ({}) with an even quotient", config.dim));
  }
  if (config.target_output)
    config.head_hidden_dim =
        static_cast<int>(fields.integer("head_intermediate_size", 1, limits.hidden_dim));
  config.norm_eps = static_cast<float>(fields.real("rms_norm_eps", 0, 1));
  config.rope_theta = fields.real("rope_theta", 0, kMaxRopeTheta, 10000.0);
}

bool ends_in_target_output(const Fields& fields) {
  const std::string output = fields.string("output").value_or("own");
  if (output != "own" && output != "target")
    fields.fail("output", in_quotes(output), "own or target");
  return output == "target";
}

/// Reads a size that config.json may leave out; if it is there, it must agree with the weights.
/// @param of_weights  the size that follows from the weights; 0: unknown
int shared_size(const Fields& fields,
                const char* name,
                std::int64_t limit,
                const ModelFiles* target,
                int of_target,
                std::int64_t of_weights) {
  auto fallback = target ? std::optional<std::int64_t>(of_target) : std::nullopt;
  if (!target && of_weights > 0 && of_weights <= limit) fallback = of_weights;
  const auto size = static_cast<int>(fields.integer(name, 1, limit, fallback));
  if (target && size != of_target)
    fields.fail(name, std::to_string(size),
                fmt::format("{} as in {}; were the heads trained for another model?", of_target,
                            target->name));
  return size;
}

/// The number of rows of a matrix in the weights; 0 if there is none.
std::int64_t rows_of(const WeightFiles& weights, const std::string& name) {
  for (const auto& file : weights.files)
    if (const TensorEntry* entry = file->find(name); entry && entry->shape.size() == 2)
      return entry->shape[0];
  return 0;
}

HeadsConfig read_heads_config(const std::string& path,
                              const WeightFiles& weights,
                              const ModelFiles* target,
                              const FileLimits& limits) {
  const Json json = read_json_file(path, limits);
  const Fields fields(json, path);
  HeadsConfig config;
  config.kind = kind_of(json, fields);
  config.base = fields.string("base_model_name_or_path").value_or("");
  std::string output;  // the first head's output matrix, by its published name
  if (config.kind == HeadsKind::Medusa) {
    config.n_heads = static_cast<int>(fields.integer("medusa_num_heads", 1, kMaxHeads));
    config.n_layers = static_cast<int>(fields.integer("medusa_num_layers", 1, kMaxHeadLayers));
    output = fmt::format("0.{}.weight", config.n_layers);
  }
  config.target_output = ends_in_target_output(fields);
  config.dim = shared_size(fields, "hidden_size", limits.dim, target,
                           target ? target->config.dim : 0, rows_of(weights, "0.0.linear.weight"));
  config.vocab_size = shared_size(fields, "vocab_size", limits.vocab_size, target,
                                  target ? target->config.vocab_size : 0, rows_of(weights, output));
  if (config.kind == HeadsKind::Chimera) {
    config.n_heads = static_cast<int>(fields.integer("chimera_num_heads", 1, kMaxHeads));
    read_encoder(fields, limits, config);
  }
  return config;
}

/// Reads the tokens that the heads rank, which the target must have. Refuses tensors that do not fit the member "output".
void read_outputs(HeadsFiles& files, const WeightFiles& weights, const ModelFiles* target) {
  HeadsConfig& c = files.config;
  const int n_tokens = target ? n_tokens_of(*target) : c.vocab_size;
  for (const auto& file : weights.files) {
    if (const TensorEntry* entry = file->find(kOutputTokens)) {
      if (!c.target_output)
        refuse(file->path(), "tensor " + in_quotes(kOutputTokens), "heads with their own outputs",
               "this tensor only beside \"output\": \"target\" in config.json");
      c.output_tokens = read_output_tokens(*file, *entry, n_tokens);
    }
    for (int head = 0; c.target_output && head < c.n_heads; head++)
      if (const TensorEntry* own = file->find(own_output_name(c, head)))
        refuse(file->path(), "tensor " + in_quotes(own->name), shown_shape(own->shape),
               "no output matrix beside \"output\": \"target\" in config.json");
  }
}

/// Checks that all tensors exist, with their shapes and a supported dtype.
void check_tensors(HeadsFiles& files, const WeightFiles& weights) {
  std::unordered_set<std::string> read = {kOutputTokens};
  const std::string path = files.tensors->path();
  std::map<kernels::DType, std::int64_t> n_of;
  for (const TensorSpec& spec : tensors_of(files.config)) {
    const TensorEntry* entry = nullptr;
    for (const auto& file : weights.files)
      if (!entry) entry = file->find(spec.name);
    const std::string field = "tensor " + in_quotes(spec.name);
    if (!entry) {
      const std::vector<std::string> names = files.tensors->names();
      refuse(path, field,
             names.empty() ? "none" : fmt::format("none (the first is {})", in_quotes(names[0])),
             fmt::format("{} for {} heads{}", shown_shape(spec.shape), files.config.n_heads,
                         files.config.kind == HeadsKind::Medusa
                             ? fmt::format(" with {} residual layers", files.config.n_layers)
                             : ""));
    }
    if (entry->shape != spec.shape)
      refuse(path, field, shown_shape(entry->shape), shown_shape(spec.shape));
    if (!entry->element())
      refuse(path, field + ": dtype", entry->dtype, "F32, F16 or BF16 for a weight");
    n_of[*entry->element()] += (entry->end - entry->begin) / kernels::bytes_of(*entry->element());
    read.insert(spec.name);
  }
  const auto by_number = [](const auto& a, const auto& b) { return a.second < b.second; };
  files.stored_dtype = std::max_element(n_of.begin(), n_of.end(), by_number)->first;
  for (const std::string& name : files.tensors->names()) {
    if (read.contains(name)) continue;
    files.notices.push_back(
        fmt::format("{}: tensor {}: ignored, because this kind of heads does not use it",
                    escaped(path), in_quotes(name)));
    break;
  }
}

}  // namespace

std::string own_output_name(const HeadsConfig& c, int head) {
  return c.kind == HeadsKind::Medusa ? fmt::format("{}.{}.weight", head, c.n_layers)
                                     : fmt::format("heads.{}.weight", head);
}

const char* name_of(HeadsKind kind) {
  return kind == HeadsKind::Medusa ? "medusa" : "chimera";
}

ModelConfig encoder_of(const HeadsConfig& c) {
  ModelConfig block;
  block.dim = c.dim;
  block.hidden_dim = c.hidden_dim;
  block.n_layers = 1;
  block.n_heads = block.n_kv_heads = c.n_attention_heads;
  block.head_dim = c.head_dim();
  block.vocab_size = c.vocab_size;
  block.norm_eps = c.norm_eps;
  block.rope.theta = c.rope_theta;
  return block;
}

std::int64_t HeadsConfig::n_params() const {
  std::int64_t n = 0;
  for (const TensorSpec& spec : tensors_of(*this)) {
    std::int64_t elements = 1;
    for (const std::int64_t size : spec.shape) elements *= size;
    n += elements;
  }
  return n;
}

std::int64_t gram_table_bytes(const HeadsConfig& config, std::int64_t most) {
  if (config.kind != HeadsKind::Chimera || config.by_first_layer) return 0;
  // In doubles, because an extreme scale may need more than 2^63 bytes.
  const double bytes = double{sizeof(float)} * config.gram * config.vocab_size * config.dim;
  return bytes <= static_cast<double>(most) ? static_cast<std::int64_t>(bytes) : 0;
}

std::vector<TensorSpec> tensors_of(const HeadsConfig& c) {
  const std::int64_t dim = c.dim, vocab = c.vocab_size, hidden = c.hidden_dim;
  std::vector<TensorSpec> specs;
  if (c.kind == HeadsKind::Medusa) {
    for (int k = 0; k < c.n_heads; k++) {
      for (int j = 0; j < c.n_layers; j++) {
        specs.push_back({fmt::format("{}.{}.linear.weight", k, j), {dim, dim}});
        specs.push_back({fmt::format("{}.{}.linear.bias", k, j), {dim}});
      }
      if (!c.target_output) specs.push_back({own_output_name(c, k), {vocab, dim}});
    }
    return specs;
  }
  if (c.own_embedding) specs.push_back({"embed_tokens.weight", {vocab, dim}});
  if (!c.by_first_layer) {
    specs.push_back({"gram.0.weight", {dim, c.gram * dim}});
    specs.push_back({"gram.1.weight", {dim, dim}});
  }
  specs.push_back({"encoder.input_layernorm.weight", {dim}});
  for (const char* part : {"q", "k", "v", "o"})
    specs.push_back({fmt::format("encoder.self_attn.{}_proj.weight", part), {dim, dim}});
  specs.push_back({"encoder.post_attention_layernorm.weight", {dim}});
  specs.push_back({"encoder.mlp.gate_proj.weight", {hidden, dim}});
  specs.push_back({"encoder.mlp.up_proj.weight", {hidden, dim}});
  specs.push_back({"encoder.mlp.down_proj.weight", {dim, hidden}});
  const std::int64_t head_in = c.residual ? 2 * dim : dim, head_hidden = c.head_hidden_dim;
  for (int k = 0; k < c.n_heads; k++) {
    if (c.target_output) {
      specs.push_back({fmt::format("heads.{}.0.weight", k), {head_hidden, head_in}});
      specs.push_back({fmt::format("heads.{}.1.weight", k), {dim, head_hidden}});
    } else {
      specs.push_back({own_output_name(c, k), {vocab, head_in}});
    }
  }
  return specs;
}

std::vector<TensorSpec> loaded_tensors_of(const HeadsConfig& config) {
  std::vector<TensorSpec> specs = tensors_of(config);
  if (config.target_output) specs.push_back({kTargetOutput, {config.n_outputs(), config.dim}});
  return specs;
}

std::vector<TensorSpec> hashed_tensors_of(const HeadsConfig& config) {
  std::vector<TensorSpec> specs = tensors_of(config);
  if (!config.output_tokens.empty()) specs.push_back({kOutputTokens, {config.n_outputs()}});
  return specs;
}

std::optional<HeadsKind> heads_kind(const std::string& directory, const FileLimits& limits) {
  std::error_code error;
  if (!fs::exists(config_path(directory), error)) return std::nullopt;
  return kind_in(read_json_file(config_path(directory), limits));
}

namespace {

/// Opens model.safetensors or shards, else the single file of published Medusa heads.
WeightFiles weights_of(const std::string& directory,
                       const FileLimits& limits,
                       std::vector<std::string>& notices) {
  const auto has = [&](const std::string& name) {
    std::error_code error;
    return fs::exists(directory + "/" + name, error);
  };
  if (has("model.safetensors") || has("model.safetensors.index.json"))
    return open_weights(directory, false, limits, notices);
  const std::string published = "medusa_lm_head";
  if (has(published + ".safetensors"))
    return open_weight_file(directory, published + ".safetensors", false, limits);
  if (has(published + ".pt"))
    refuse(directory, "heads", "medusa_lm_head.pt, PyTorch weights, which are not supported",
           "medusa_lm_head.safetensors; convert it in that directory, with torch installed: "
           "`python3 -c \"import torch, safetensors.torch as s; s.save_file({k: v.contiguous() for "
           "k, v in torch.load('medusa_lm_head.pt', 'cpu', weights_only=True).items()}, "
           "'medusa_lm_head.safetensors')\"`");
  const OtherFormat other = recognise_directory(directory);
  refuse(directory, "heads", other.is_known() ? other.found : "no weights",
         "model.safetensors or medusa_lm_head.safetensors" +
             (other.is_known() ? "; " + other.advice : std::string()));
}

/// Refuses a config.json that does not describe draft heads, before opening the weights.
void refuse_other_kind(const std::string& path, const FileLimits& limits) {
  const Json json = read_json_file(path, limits);
  kind_of(json, Fields(json, path));
}

}  // namespace

HeadsFiles open_heads(const std::string& directory,
                      const ModelFiles* target,
                      const FileLimits& limits) {
  std::error_code error;
  if (!fs::exists(config_path(directory), error))
    refuse(directory, "heads", "no config.json", "a directory with config.json and *.safetensors");
  HeadsFiles files;
  files.path = directory;
  files.name = fs::weakly_canonical(directory).filename().string();
  refuse_other_kind(config_path(directory), limits);
  const WeightFiles weights = weights_of(directory, limits, files.notices);
  files.config = read_heads_config(config_path(directory), weights, target, limits);
  files.tensors = weights.tensors;
  read_outputs(files, weights, target);
  check_tensors(files, weights);
  if (files.config.target_output && target)
    files.tensors = with_target_output(files.tensors, files.config.output_tokens, *target);
  const std::string& base = files.config.base;
  if (target && !base.empty() && !is_same_model(base, target->name))
    files.notices.push_back(fmt::format(
        "{}: base_model_name_or_path is {}, the target is {}: few drafts may be accepted",
        escaped(config_path(directory)), in_quotes(base), target->name));
  return files;
}

std::string heads_of_card(const std::string& model_directory,
                          HeadsKind kind,
                          const FileLimits& limits) {
  const std::string path = model_directory + "/decoscope.json";
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  const Json json = read_json_file(path, limits);
  const auto name = Fields(json, path).string(name_of(kind));
  if (!name) return "";
  if (name->empty() || name->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
    refuse(path, name_of(kind), in_quotes(*name), "the name of a directory of heads");
  return *name;
}

std::shared_ptr<const TensorSource> random_heads(const HeadsConfig& config, std::uint64_t seed) {
  return random_tensors(tensors_of(config), seed);
}

}  // namespace engine
