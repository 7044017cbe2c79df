#include "engine/checkpoint/model_files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/closest_name.h"
#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/refuse.h"
#include "engine/chat/template_files.h"
#include "engine/checkpoint/adapter/lora_adapter.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/found/found_models.h"
#include "engine/checkpoint/gguf/gguf_model.h"
#include "engine/checkpoint/gguf/gguf_shards.h"
#include "engine/checkpoint/other_formats.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/tokenizer_path.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void refuse_no_directory(const std::string& path) {
  const OtherFormat other = recognise_path(path);
  const std::string expected = "a Hugging Face model directory";
  if (other.is_known()) refuse(path, "model", other.found, expected + "; " + other.advice);
  if (!exists(path)) refuse(path, "model", "nothing at this path", expected);
}

// Lists all missing files in one message.
void check_parts(const std::string& directory, bool needs_tokenizer) {
  refuse_no_directory(directory);
  std::string missing;
  const auto want = [&](const std::string& what, bool is_there) {
    if (!is_there) missing += (missing.empty() ? "no " : ", no ") + what;
  };
  want("config.json", exists(directory + "/config.json"));
  want("weights (looked for model.safetensors, model.safetensors.index.json)",
       exists(directory + "/model.safetensors") ||
           exists(directory + "/model.safetensors.index.json"));
  if (needs_tokenizer)
    want("tokenizer (looked for tokenizer.model, tokenizer.json, tekken.json, *.tiktoken)",
         has_tokenizer(directory));
  if (missing.empty()) return;
  const bool has_weights = exists(directory + "/model.safetensors") ||
                           exists(directory + "/model.safetensors.index.json");
  const OtherFormat other = has_weights ? OtherFormat() : recognise_directory(directory);
  refuse(directory, "directory",
         other.is_known() ? fmt::format("{}: {}", other.found, missing) : missing,
         "config.json, *.safetensors" + std::string(needs_tokenizer ? " and a tokenizer" : "") +
             (other.is_known() ? "; " + other.advice : ""));
}

// The layer number in "model.layers.12.mlp...", -1 for other names.
int layer_of(const std::string& name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return -1;
  std::int64_t layer = 0;
  std::size_t i = kPrefix.size();
  const std::size_t begin = i;
  for (; i < name.size() && name[i] >= '0' && name[i] <= '9' && layer < 1'000'000; i++) {
    layer = 10 * layer + (name[i] - '0');
  }
  return i > begin && i < name.size() && name[i] == '.' ? static_cast<int>(layer) : -1;
}

// If the embedding has more rows than vocab_size, the further rows are accepted as padding,
// provided that lm_head has the same number of rows and a tokenizer defines the valid ids.
void accept_padded_vocabulary(ModelFiles& files,
                              const std::map<std::string, const TensorEntry*>& entries,
                              const FileLimits& limits) {
  const auto rows_of = [&](const char* name) -> std::int64_t {
    const auto at = entries.find(name);
    return at == entries.end() || at->second->shape.size() != 2 ? -1 : at->second->shape[0];
  };
  const std::int64_t rows = rows_of("model.embed_tokens.weight");
  ModelConfig& config = files.config;
  const int n_pieces = files.tokenizer ? files.tokenizer->vocab_size() : config.vocab_size;
  const std::string counts =
      fmt::format("vocab_size {}, {} tokens in the tokenizer, {} rows in the embedding",
                  config.vocab_size, files.tokenizer ? std::to_string(n_pieces) : "no", rows);
  const std::string config_path = files.path + "/config.json";
  if (config.vocab_size < n_pieces || (rows >= 0 && rows < config.vocab_size)) {
    refuse(config_path, "vocab_size", counts, "tokens <= vocab_size <= rows");
  }
  if (rows <= config.vocab_size) return;
  const bool fits = config.tied_embeddings || rows_of("lm_head.weight") == rows;
  if (!fits || !files.tokenizer || rows > limits.vocab_size) {
    refuse(config_path, "vocab_size", counts, fmt::format("{}", rows));
  }
  files.notices.push_back(
      fmt::format("{}: {}: the further rows are padding", escaped(config_path), counts));
  config.vocab_size = static_cast<int>(rows);
}

void check_layer_count(const ModelFiles& files,
                       const std::map<std::string, const TensorEntry*>& entries) {
  for (const auto& [name, entry] : entries) {
    const int layer = layer_of(name);
    if (layer < files.config.n_layers) continue;
    refuse(files.path + "/config.json", "num_hidden_layers", std::to_string(files.config.n_layers),
           fmt::format("more, as layer {} has the tensor {}", layer, in_quotes(name)));
  }
}

// Explains why a tensor is missing: the weights belong to an EAGLE draft (recognised by its input
// matrix for the target's states), or their names have the prefix of a wrapper.
void refuse_other_weights(const TensorSource& tensors, const std::string& name) {
  if (tensors.has("fc.weight"))
    refuse(tensors.path(), "model", "a draft of EAGLE (it has the tensor \"fc.weight\")",
           "a whole model; drafts of EAGLE read the target's hidden states and are not supported; "
           "use a smaller model with the target's vocabulary and --decoder speculative");
  const std::string prefix = prefix_of_wrapper(tensors.names(), name);
  if (prefix.empty()) return;
  refuse(tensors.path(), "tensor " + in_quotes(name), in_quotes(prefix + name),
         fmt::format("the name without the prefix {}, which a wrapper such as DataParallel or "
                     "torch.compile adds; save the model inside the wrapper: "
                     "model.module.save_pretrained(DIR)",
                     in_quotes(prefix)));
}

void check_shapes(const ModelFiles& files,
                  const std::map<std::string, const TensorEntry*>& entries) {
  for (const TensorSpec& spec : own_tensors_of(files.config)) {
    const auto at = entries.find(spec.name);
    if (at == entries.end()) {
      const int layer = layer_of(spec.name);
      const std::string where = layer < 0 ? "" : fmt::format(" of layer {}", layer);
      refuse_other_weights(*files.tensors, spec.name);
      refuse(files.tensors->path(), "tensor " + in_quotes(spec.name), "none",
             fmt::format("{}{}, num_hidden_layers being {}", shown_shape(spec.shape), where,
                         files.config.n_layers));
    }
    const TensorEntry& entry = *at->second;
    if (entry.shape != spec.shape) {
      refuse(files.tensors->path(), "tensor " + in_quotes(spec.name), shown_shape(entry.shape),
             shown_shape(spec.shape));
    }
    if (!entry.element()) {
      refuse(files.tensors->path(), "tensor " + in_quotes(spec.name) + ": dtype", entry.dtype,
             "F32, F16 or BF16 for a weight");
    }
  }
}

// Sets the dtype to that of most weights in the files. The dtype in config.json is only compared
// with it.
void choose_dtype(ModelFiles& files,
                  const ConfigFile& config,
                  const std::map<std::string, const TensorEntry*>& entries) {
  std::map<kernels::DType, std::int64_t> bytes;
  for (const TensorSpec& spec : own_tensors_of(files.config)) {
    const TensorEntry& entry = *entries.at(spec.name);
    bytes[*entry.element()] += entry.end - entry.begin;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) {
    return a.second / kernels::bytes_of(a.first) < b.second / kernels::bytes_of(b.first);
  });
  files.stored_dtype = most->first;
  files.stored_type = kernels::name_of(most->first);
  if (bytes.size() > 1) {
    files.notices.push_back(fmt::format("{}: weights of {} dtypes, most {}",
                                        escaped(files.tensors->path()), bytes.size(),
                                        kernels::name_of(most->first)));
  }
  if (config.dtype && *config.dtype != files.stored_dtype) {
    files.notices.push_back(fmt::format("{}: dtype is {}, but the weights are {}: using the latter",
                                        escaped(files.path + "/config.json"),
                                        kernels::name_of(*config.dtype),
                                        kernels::name_of(files.stored_dtype)));
  }
}

void note_unused_tensors(ModelFiles& files,
                         const std::map<std::string, const TensorEntry*>& entries) {
  std::unordered_set<std::string> used;
  for (const TensorSpec& spec : own_tensors_of(files.config)) used.insert(spec.name);
  if (!files.output_tokens.empty()) used.insert(kOutputTokens);
  if (files.config.tied_embeddings) used.insert("lm_head.weight");
  std::size_t n_unused = 0;
  std::string example;
  for (const auto& [name, entry] : entries) {
    if (used.contains(name)) continue;
    if (n_unused++ == 0) example = name;
  }
  if (n_unused == 0) return;
  files.notices.push_back(fmt::format(
      "{}: {} tensors are ignored because this kind of model does not use them, e.g. {}",
      escaped(files.tensors->path()), n_unused, in_quotes(example)));
}

// Uses lm_head.weight if it differs from the embedding to which it should be tied, as transformers
// 5 does.
void use_head_that_differs(ModelFiles& files,
                           const std::map<std::string, const TensorEntry*>& entries) {
  const auto head = entries.find("lm_head.weight");
  const auto embedding = entries.find("model.embed_tokens.weight");
  if (!files.config.tied_embeddings || head == entries.end() || embedding == entries.end()) return;
  const TensorEntry &a = *head->second, &b = *embedding->second;
  bool is_same = a.shape == b.shape && a.dtype == b.dtype;
  if (is_same && a.element()) {
    const Tensor own = files.tensors->read("lm_head.weight");
    const Tensor shared = files.tensors->read("model.embed_tokens.weight");
    is_same = std::memcmp(own.data, shared.data, static_cast<std::size_t>(a.end - a.begin)) == 0;
  }
  if (is_same) return;
  files.config.tied_embeddings = false;
  files.notices.push_back(
      fmt::format("{}: tie_word_embeddings is true, but lm_head.weight differs from the embedding: "
                  "lm_head.weight is used",
                  escaped(files.path + "/config.json")));
}

// In transformers only config.json and generation_config.json determine where generation ends.
void note_other_end(ModelFiles& files) {
  const std::optional<TokenId> end = files.tokenizer->eos_id();
  const std::vector<TokenId>& ids = files.config.eos_ids;
  if (!end || ids.empty() || std::ranges::find(ids, *end) != ids.end()) return;
  files.notices.push_back(
      fmt::format("{}: eos_token is {}, id {}, not an eos_token_id of the model's configuration: "
                  "generation ends there and at {}",
                  escaped(files.path + "/tokenizer_config.json"),
                  in_quotes(files.tokenizer->piece(*end)), *end, fmt::join(ids, ", ")));
}

// Reads a member of decoscope.json that names a related model, such as {"draft": "demo-draft",
// "before": "demo-target"}; empty if absent.
std::string related_model(const std::string& directory,
                          const char* field,
                          const FileLimits& limits) {
  const std::string path = directory + "/decoscope.json";
  if (!exists(path)) return {};
  const Json json = read_json_file(path, limits);
  const std::optional<std::string> name = Fields(json, path).string(field);
  if (!name) return {};
  if (name->empty() || name->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    refuse(path, field, in_quotes(*name), "the name of a model");
  }
  return *name;
}

// Indexes tensors by full name. If two tensors have the same full name, keeps the one stored under
// that name.
std::map<std::string, const TensorEntry*> entries_of(const WeightFiles& weights) {
  std::map<std::string, const TensorEntry*> entries;
  for (const auto& file : weights.files) {
    for (const TensorEntry& entry : file->entries()) {
      if (!weights.tensors->has(entry.name)) continue;
      const auto [at, is_new] = entries.emplace(full_name(entry.name), &entry);
      if (!is_new && entry.name == at->first) at->second = &entry;
    }
  }
  return entries;
}

ModelFiles open_directory(const std::string& directory, const OpenOptions& options) {
  const FileLimits& limits = options.limits;
  const ModelFiles* const target = target_of_draft(directory, options);
  check_parts(directory, options.needs_tokenizer && !target);
  ConfigFile config = read_config(directory + "/config.json", true, limits, options.context);
  const std::string generation = directory + "/generation_config.json";
  ModelFiles files;
  if (exists(generation))
    read_generation_config(generation, limits, options.generation, config, files.generation);
  files.path = directory;
  files.name = fs::weakly_canonical(directory).filename().string();
  files.config = config.config;
  files.notices = config.notices;
  if (files.config.eos_ids.empty()) {
    files.notices.push_back(
        escaped(directory + "/config.json") +
        ": no eos_token_id: generation ends at the tokenizer's end tokens or at the length limit");
  }
  if (has_tokenizer(directory) && !target) {
    files.tokenizer = open_tokenizer(directory, limits, files.notices, config.config.model_type,
                                     config.config.vocab_size);
    note_other_end(files);
  }
  const WeightFiles weights =
      open_weights(directory, options.allow_external_shards, limits, files.notices);
  files.tensors = with_full_names(weights.tensors, files.notices);
  const std::map<std::string, const TensorEntry*> entries = entries_of(weights);
  if (target) {
    share_embedding(*target, weights, files);
  } else {
    use_head_that_differs(files, entries);
    accept_padded_vocabulary(files, entries, limits);
  }
  check_layer_count(files, entries);
  check_shapes(files, entries);
  choose_dtype(files, config, entries);
  if (target && target->quantised) {
    files.quantised = true;
    files.packed_type = guess_type(*target);
    files.stored_type = kernels::name_of(files.packed_type);
  }
  note_unused_tensors(files, entries);
  if (exists(directory + "/adapter_config.json"))
    files.notices.push_back(
        escaped(directory) +
        "/adapter_config.json: the adapter is not applied; the model runs without it");
  files.draft_name = related_model(directory, "draft", limits);
  files.chat_template = read_chat_template(directory, limits);
  return files;
}

}  // namespace

namespace {

void apply_adapter(ModelFiles& files, const std::string& folder, const FileLimits& limits) {
  LoraAdapter adapter = open_adapter(folder, limits);
  files.notices.push_back(fmt::format(
      "{}: adapter of {} matrices{}, merged into {}", escaped(folder), adapter.updates.size(),
      adapter.base.empty() ? "" : " of " + escaped(adapter.base), escaped(files.name)));
  files.tensors = with_adapter(files.tensors, tensors_of(files.config), std::move(adapter));
  files.name += "+" + fs::weakly_canonical(folder).filename().string();
}

}  // namespace

int n_tokens_of(const ModelFiles& files) {
  const int rows = files.config.vocab_size;
  return files.tokenizer ? std::min(files.tokenizer->vocab_size(), rows) : rows;
}

ModelFiles open_model(const std::string& path, const OpenOptions& options) {
  const auto [base, adapter] = split_adapter(path);
  ModelFiles files =
      is_gguf_path(base) ? open_gguf_model(base, options) : open_directory(base, options);
  if (const std::string name = name_in_store(base); !name.empty()) files.name = name;
  if (!adapter.empty()) apply_adapter(files, adapter, options.limits);
  return files;
}

std::string name_before_training(const std::string& directory, const FileLimits& limits) {
  return related_model(directory, "before", limits);
}

namespace {

bool is_bare_name(const std::string& text) {
  return !text.empty() && text != "." && text != ".." &&
         text.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

}  // namespace

bool is_ambiguous_model_name(const std::string& name, const std::string& assets_dir) {
  const std::string bundled = assets_dir + "/models/" + name;
  std::error_code unknown;
  return is_bare_name(name) && exists(bundled + "/config.json") &&
         (exists(name + "/config.json") || exists(name + "/tokenizer.model")) &&
         !fs::equivalent(name, bundled, unknown);
}

std::string ambiguous_name_notice(const std::string& name, const std::string& assets_dir) {
  if (!is_ambiguous_model_name(name, assets_dir)) return {};
  return fmt::format(
      "{0}: found the bundled model and the folder ./{0}; the bundled model is used, name the "
      "folder ./{0}",
      escaped(name));
}

namespace {

std::vector<FoundModel> bundled_models(const std::string& assets_dir) {
  std::vector<FoundModel> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(assets_dir + "/models", error))
    if (exists(entry.path().string() + "/config.json"))
      models.push_back({entry.path().filename().string(), entry.path().string(), "bundled"});
  std::ranges::sort(models, {}, &FoundModel::name);
  return models;
}

/// How to get a model that is known by this name or prefix; empty: it is not known.
std::string how_to_fetch(const std::string& name) {
  constexpr std::string_view kHub = "hf:", kOllama = "ollama:";
  if (name.starts_with(kHub))
    return fmt::format("; `hf download {}` fetches it", escaped(name.substr(kHub.size())));
  if (name.starts_with(kOllama))
    return fmt::format("; `ollama pull {}` fetches it", escaped(name.substr(kOllama.size())));
  if (name == "smollm2") return "; `scripts/get_model.sh smollm2` downloads it";
  if (name == "gemma3-270m")
    return "; `scripts/get_model.sh gemma3-270m` downloads it as gemma-3-270m";
  return {};
}

[[noreturn]] void refuse_unknown_model(const std::string& name,
                                       const std::string& found,
                                       const std::vector<FoundModel>& models) {
  constexpr std::size_t kMostNamed = 12;
  std::vector<std::string> known;
  for (const FoundModel& model : models) known.push_back(escaped(model.name));
  const std::string fetch = how_to_fetch(name);
  const std::string meant = fetch.empty() ? did_you_mean(name, known) : fetch;
  const std::string others = known.size() > kMostNamed ? ", ... (`decoscope model list`)" : "";
  known.resize(std::min(known.size(), kMostNamed));
  refuse(name, "model", found,
         known.empty() ? "a Hugging Face directory or a .gguf file" + meant
                       : fmt::format("one of {}{}, a directory or a .gguf file{}",
                                     fmt::join(known, ", "), others, meant));
}

}  // namespace

namespace {

/// The path of an adapter's base model and the adapter, as open_model() reads it.
std::string with_its_base(const std::string& adapter, const std::string& assets_dir) {
  const std::string base = base_of_adapter(adapter);
  const std::string hint = fmt::format("name the base model, MODEL+{}", escaped(adapter));
  if (base.empty()) refuse(adapter, "adapter", "no base_model_name_or_path", hint);
  // At last without the organisation, so that a GGUF file of the base is found.
  for (const std::string& name : {base, "hf:" + base, base.substr(base.rfind('/') + 1)}) {
    try {
      return find_model(name, assets_dir) + "+" + adapter;
    } catch (const Error&) {
    }
  }
  refuse(adapter, "adapter", "the base model " + in_quotes(base) + ", which is not here", hint);
}

}  // namespace

std::string find_model(const std::string& name_or_path, const std::string& assets_dir) {
  if (is_adapter(name_or_path)) return with_its_base(name_or_path, assets_dir);
  if (const auto [model, adapter] = split_adapter(name_or_path); !adapter.empty())
    return find_model(model, assets_dir) + "+" + adapter;
  const std::string bundled = assets_dir + "/models/" + name_or_path;
  const bool is_name = is_bare_name(name_or_path);
  if (is_name && exists(bundled + "/config.json")) return bundled;
  std::error_code error;
  if (fs::is_directory(name_or_path, error)) return model_in_folder(name_or_path);
  if (is_gguf_path(name_or_path)) return name_or_path;
  std::vector<FoundModel> models = bundled_models(assets_dir);
  for (FoundModel& model : found_models(model_places())) models.push_back(std::move(model));
  if (const auto path = find_model_by_name(name_or_path, models)) return *path;
  if (const OtherFormat other = recognise_path(name_or_path); other.is_known())
    refuse(name_or_path, "model", other.found,
           "a model's name, a Hugging Face directory or a .gguf file; " + other.advice);
  const bool is_path = !is_name && how_to_fetch(name_or_path).empty();
  refuse_unknown_model(name_or_path,
                       fs::exists(name_or_path, error) ? "no model"
                       : is_path                       ? "nothing at this path"
                                                       : "no model, directory or file of this name",
                       models);
}

std::string beside_or_named(const std::string& directory,
                            const std::string& name,
                            const std::string& assets_dir) {
  if (name.empty()) return name;
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(directory, error).parent_path();
  if (error || folder == fs::weakly_canonical(assets_dir + "/models", error)) return name;
  const fs::path beside = folder / name;
  return exists((beside / "config.json").string()) ? beside.string() : name;
}

}  // namespace engine
