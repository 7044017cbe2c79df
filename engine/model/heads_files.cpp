#include "engine/model/heads_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/model/fields.h"
#include "engine/model/json.h"
#include "engine/model/random.h"
#include "engine/model/refuse.h"
#include "engine/model/shards.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxHeads = 64, kMaxHeadLayers = 16, kMaxGram = 5;
constexpr double kMaxRopeTheta = 1e12;
constexpr const char* kKinds = "medusa or chimera";

std::string config_path(const std::string& directory) {
  return directory + "/config.json";
}

HeadsKind kind_of(const Fields& fields) {
  const auto type = fields.string("model_type");
  if (!type) fields.fail("model_type", "none", kKinds);
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera})
    if (*type == name_of(kind)) return kind;
  fields.fail("model_type", in_quotes(*type), kKinds);
}

void read_encoder(const Fields& fields, const FileLimits& limits, HeadsConfig& config) {
  config.gram = static_cast<int>(fields.integer("gram", 1, kMaxGram));
  config.residual = fields.boolean("residual", true);
  const std::string first = fields.string("first_layer").value_or("frozen");
  if (first != "frozen" && first != "finetuned")
    fields.fail("first_layer", in_quotes(first), "frozen or finetuned");
  config.own_embedding = first == "finetuned";
  // Heads that do not say so learned without them.
  config.sees_committed_grams = fields.boolean("sees_committed_grams", false);
  config.hidden_dim = static_cast<int>(fields.integer("intermediate_size", 1, limits.hidden_dim));
  config.n_attention_heads =
      static_cast<int>(fields.integer("num_attention_heads", 1, limits.n_heads));
  if (config.dim % config.n_attention_heads != 0 || config.head_dim() % 2 != 0) {
    fields.fail(
        "num_attention_heads", std::to_string(config.n_attention_heads),
        fmt::format("a number that cuts hidden_size ({}) into heads of an even size", config.dim));
  }
  config.norm_eps = static_cast<float>(fields.real("rms_norm_eps", 0, 1));
  config.rope_theta = fields.real("rope_theta", 0, kMaxRopeTheta, 10000.0);
}

/// A size that config.json may leave to the target and must not contradict.
int shared_size(const Fields& fields,
                const char* name,
                std::int64_t limit,
                const ModelFiles* target,
                int of_target) {
  const auto fallback = target ? std::optional<std::int64_t>(of_target) : std::nullopt;
  const auto size = static_cast<int>(fields.integer(name, 1, limit, fallback));
  if (target && size != of_target)
    fields.fail(name, std::to_string(size),
                fmt::format("{}, that of {}; were they trained for another model?", of_target,
                            target->name));
  return size;
}

HeadsConfig read_heads_config(const std::string& path,
                              const ModelFiles* target,
                              const FileLimits& limits) {
  const Json json = read_json_file(path, limits);
  const Fields fields(json, path);
  HeadsConfig config;
  config.kind = kind_of(fields);
  config.base = fields.string("base_model_name_or_path").value_or("");
  config.dim =
      shared_size(fields, "hidden_size", limits.dim, target, target ? target->config.dim : 0);
  config.vocab_size = shared_size(fields, "vocab_size", limits.vocab_size, target,
                                  target ? target->config.vocab_size : 0);
  if (config.kind == HeadsKind::Medusa) {
    config.n_heads = static_cast<int>(fields.integer("medusa_num_heads", 1, kMaxHeads));
    config.n_layers = static_cast<int>(fields.integer("medusa_num_layers", 1, kMaxHeadLayers));
  } else {
    config.n_heads = static_cast<int>(fields.integer("chimera_num_heads", 1, kMaxHeads));
    read_encoder(fields, limits, config);
  }
  return config;
}

/// Every tensor of the config is there, of its shape, in a type that is computed with.
void check_tensors(HeadsFiles& files, const WeightFiles& weights) {
  std::unordered_set<std::string> read;
  const std::string path = files.tensors->path();
  std::map<kernels::DType, std::int64_t> n_of;
  for (const TensorSpec& spec : tensors_of(files.config)) {
    const TensorEntry* entry = nullptr;
    for (const auto& file : weights.files)
      if (!entry) entry = file->find(spec.name);
    const std::string field = "tensor " + in_quotes(spec.name);
    if (!entry)
      refuse(
          path, field, "none",
          fmt::format("{}, there being {} heads", shown_shape(spec.shape), files.config.n_heads));
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
    files.notices.push_back(fmt::format("{}: tensor {}: no such heads read it; it is ignored",
                                        escaped(path), in_quotes(name)));
    break;
  }
}

}  // namespace

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
  if (config.kind != HeadsKind::Chimera) return 0;
  // A scale that nobody can hold may pass 2^63.
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
      specs.push_back({fmt::format("{}.{}.weight", k, c.n_layers), {vocab, dim}});
    }
    return specs;
  }
  if (c.own_embedding) specs.push_back({"embed_tokens.weight", {vocab, dim}});
  specs.push_back({"gram.0.weight", {dim, c.gram * dim}});
  specs.push_back({"gram.1.weight", {dim, dim}});
  specs.push_back({"encoder.input_layernorm.weight", {dim}});
  for (const char* part : {"q", "k", "v", "o"})
    specs.push_back({fmt::format("encoder.self_attn.{}_proj.weight", part), {dim, dim}});
  specs.push_back({"encoder.post_attention_layernorm.weight", {dim}});
  specs.push_back({"encoder.mlp.gate_proj.weight", {hidden, dim}});
  specs.push_back({"encoder.mlp.up_proj.weight", {hidden, dim}});
  specs.push_back({"encoder.mlp.down_proj.weight", {dim, hidden}});
  for (int k = 0; k < c.n_heads; k++)
    specs.push_back({fmt::format("heads.{}.weight", k), {vocab, c.residual ? 2 * dim : dim}});
  return specs;
}

std::optional<HeadsKind> heads_kind(const std::string& directory, const FileLimits& limits) {
  std::error_code error;
  if (!fs::exists(config_path(directory), error)) return std::nullopt;
  const Json json = read_json_file(config_path(directory), limits);
  const Json* type = json.find("model_type");
  for (const HeadsKind kind : {HeadsKind::Medusa, HeadsKind::Chimera})
    if (type && type->text == name_of(kind)) return kind;
  return std::nullopt;
}

HeadsFiles open_heads(const std::string& directory,
                      const ModelFiles* target,
                      const FileLimits& limits) {
  std::error_code error;
  if (!fs::exists(config_path(directory), error))
    refuse(directory, "heads", "no config.json", "a directory with config.json and *.safetensors");
  HeadsFiles files;
  files.path = directory;
  files.name = fs::weakly_canonical(directory).filename().string();
  files.config = read_heads_config(config_path(directory), target, limits);
  const WeightFiles weights = open_weights(directory, false, limits, files.notices);
  files.tensors = weights.tensors;
  check_tensors(files, weights);
  const std::string& base = files.config.base;
  if (target && !base.empty() && fs::path(base).filename() != fs::path(target->name).filename())
    files.notices.push_back(
        fmt::format("{}: base_model_name_or_path says {}, the target is {}: they may guess badly",
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
