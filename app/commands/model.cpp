#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/commands/heads.h"
#include "app/commands/models/chat.h"
#include "app/commands/models/convert.h"
#include "app/commands/models/list.h"
#include "app/commands/models/tokenize.h"
#include "app/commands/named_model.h"
#include "app/commands/report.h"
#include "engine/base/output_file.h"
#include "engine/base/table.h"
#include "engine/checkpoint/config_file.h"
#include "engine/checkpoint/families/architectures.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/non_finite.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/store/memory_plan.h"
#include "engine/store/weights_hash.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/train/run/output_folder.h"

namespace app {
namespace {

using engine::Error;
using engine::ErrorCode;
using nlohmann::json;

/// Memory of a run at 1x1, in bytes; weights and cache in the stored dtype.
json memory_json(const engine::ModelFiles& files) {
  const engine::MemoryPlan plan = engine::default_memory_plan(files);
  return {
      {"weight_bytes", number_json(plan.weights)},
      {"workspace_bytes", number_json(plan.workspace)},
      {"cache_bytes_per_token", number_json(plan.cache_per_token)},
      {"cache_bytes_full_context", number_json(plan.cache_per_token * files.config.max_seq_len)}};
}

/// The hash of the weights; nullopt if Ctrl+C came before all were read.
using WeightsHash = std::optional<std::string>;

WeightsHash hash_of(engine::ModelFiles files) {
  files.tensors = engine::stoppable(files.tensors, interrupted, "not all weights were read");
  try {
    return engine::weights_hash(files);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Cancelled) throw;
    return std::nullopt;
  }
}

json info_json(const engine::ModelFiles& files, const WeightsHash& hash) {
  const engine::ModelConfig& c = files.config;
  json eos = json::array();
  for (const engine::TokenId id : c.eos_ids) eos.push_back(id);
  return {{"name", files.name},
          {"path", files.path},
          {"model_type", c.model_type},
          {"parameters", c.n_params()},
          {"dtype", kernels::name_of(files.stored_dtype)},
          {"stored_type", files.stored_type},
          {"weights_hash", hash ? json(*hash) : json(nullptr)},
          {"dim", c.dim},
          {"hidden_dim", c.hidden_dim},
          {"n_layers", c.n_layers},
          {"n_heads", c.n_heads},
          {"n_kv_heads", c.n_kv_heads},
          {"head_dim", c.head_dim},
          {"vocab_size", c.vocab_size},
          {"tokenizer_size", files.tokenizer ? json(files.tokenizer->vocab_size()) : json(nullptr)},
          {"max_seq_len", c.max_seq_len},
          {"max_position_embeddings", c.max_position_embeddings},
          {"tied_embeddings", c.tied_embeddings},
          {"qkv_bias", c.qkv_bias},
          {"sliding_window", c.sliding_window},
          {"rope",
           {{"type", name_of(c.rope.type)}, {"theta", c.rope.theta}, {"factor", c.rope.factor}}},
          {"norm_eps", c.norm_eps},
          {"eos_ids", eos},
          {"draft", files.draft_name},
          {"memory", memory_json(files)},
          {"notices", files.notices}};
}

/// The context length, with its RoPE scaling if there is one.
std::string context_words(const engine::ModelConfig& c) {
  if (c.max_seq_len == c.max_position_embeddings) return fmt::format("{}", c.max_seq_len);
  return fmt::format("{}: {} extended by {} RoPE scaling", c.max_seq_len, c.max_position_embeddings,
                     name_of(c.rope.type));
}

std::string info_text(const engine::ModelFiles& files, const WeightsHash& hash) {
  const engine::ModelConfig& c = files.config;
  const engine::MemoryPlan plan = engine::default_memory_plan(files);
  const engine::Architecture* architecture = engine::architecture_of_type(c.model_type);
  std::vector<std::vector<std::string>> rows = {
      {"name", files.name},
      {"architecture", architecture ? architecture->name : c.model_type},
      {"parameters", fmt::format("{:.2f} M", static_cast<double>(c.n_params()) * 1e-6)},
      {"stored as", engine::storage_words(files)},
      {"weights hash", hash.value_or("not known: cancelled")},
      {"shape", fmt::format("{} layers x {}, {} heads ({} kv) of {}, ff {}", c.n_layers, c.dim,
                            c.n_heads, c.n_kv_heads, c.head_dim, c.hidden_dim)},
      {"vocabulary", fmt::format("{}{}", c.vocab_size, c.tied_embeddings ? ", tied" : "")},
      {"context", context_words(c)},
      {"memory", fmt::format("{} weights, {} workspace", engine::size_words(plan.weights),
                             engine::size_words(plan.workspace))},
      {"cache", fmt::format("{:.0f} bytes per token, {} at full context", plan.cache_per_token,
                            engine::size_words(plan.cache_per_token * c.max_seq_len))},
      {"rope", fmt::format("{}, theta {}", name_of(c.rope.type), c.rope.theta)}};
  if (c.sliding_window) rows.push_back({"sliding window", fmt::format("{}", c.sliding_window)});
  if (!files.draft_name.empty()) rows.push_back({"draft", files.draft_name});
  std::string text = engine::aligned_table(rows);
  for (const std::string& notice : files.notices) text += "note: " + notice + "\n";
  return text;
}

engine::ModelFiles open(const ModelCommandOptions& options) {
  return engine::open_model(model_folder(options.path),
                            {.allow_external_shards = options.allow_external_shards,
                             .needs_tokenizer = false,
                             .limits = options.limits});
}

kernels::DType dtype_or(const std::string& name, kernels::DType otherwise) {
  if (name.empty()) return otherwise;
  const auto dtype = kernels::dtype_named(name);
  if (!dtype)
    throw Error(ErrorCode::Usage, fmt::format("--dtype {}: expected f32, bf16 or f16", name));
  return *dtype;
}

/// Writes the model that the options describe.
void write(const ModelCommandOptions& options,
           const engine::ModelConfig& config,
           std::shared_ptr<const engine::TensorSource> tensors,
           kernels::DType dtype,
           const std::string& tokenizer_from) {
  engine::write_model(
      options.out, config,
      *engine::stoppable(std::move(tensors), interrupted, "nothing was written to " + options.out),
      dtype, tokenizer_from);
}

void copy_file(const std::string& from, const std::string& to) {
  std::ifstream file(from, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(std::filesystem::file_size(from)), '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    throw Error(ErrorCode::Resources, from + ": cannot be read completely; check the disk");
  engine::OutputFile out(to);
  out.write(bytes);
  out.finish();
}

/// Checks the free disk space.
/// @throws Error(Resources)  the disk of `out` has no room for these weights
void refuse_small_disk(const std::string& out,
                       const engine::ModelConfig& config,
                       kernels::DType dtype) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::absolute(out, error);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  const double needed = engine::memory_plan(config, dtype).weights;
  if (error || needed <= static_cast<double>(space.available)) return;
  throw Error(
      ErrorCode::Resources,
      fmt::format(
          "{}: the weights need {}, {} are free; use a smaller shape or scale, or another disk",
          out, engine::size_words(needed),
          engine::size_words(static_cast<double>(space.available))));
}

/// Resolves --tokenizer to a tokenizer.model: a file, a directory with one, or a bundled model.
std::string tokenizer_file(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(given, error) && !fs::is_directory(given, error)) return given;
  const bool is_folder = fs::is_directory(given, error);
  if (is_folder) note_folder_is_used("--tokenizer", given);
  const std::string folder = is_folder ? given : model_folder(given);
  return folder + "/tokenizer.model";
}

/// Checks that the embedding has a row for each token.
/// @throws Error(BadInput)  the embedding has fewer rows
void check_vocabulary(const std::string& file,
                      const engine::ModelConfig& config,
                      const engine::FileLimits& limits) {
  const std::filesystem::path path = file;
  const bool with_files = path.filename() == "tokenizer.model";  // copies the related files, too
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  std::vector<std::string> notices;  // ignored here, because loading the model shows them again
  const int n =
      (with_files
           ? engine::open_tokenizer(folder, limits, notices, config.model_type, config.vocab_size)
           : engine::open_sentencepiece(file, {.add_bos = false, .limits = limits}))
          ->vocab_size();
  if (n <= config.vocab_size) return;
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: found {} tokens, expected at most {}, the vocab_size of the "
                          "config.json; increase it, or use a smaller tokenizer",
                          file, n, config.vocab_size));
}

engine::ModelConfig config_of(const ModelCommandOptions& options) {
  const ReadingInput reading(options.config, "a config.json");
  return engine::read_model_config(options.config, options.limits);
}

void make_random(const ModelCommandOptions& options) {
  const engine::ModelConfig config = config_of(options);
  const kernels::DType dtype = dtype_or(options.dtype, kernels::DType::BF16);
  refuse_small_disk(options.out, config, dtype);
  const std::string tokenizer = options.tokenizer.empty() ? "" : tokenizer_file(options.tokenizer);
  if (!tokenizer.empty()) check_vocabulary(tokenizer, config, options.limits);
  const auto tensors = engine::random_tensors(config, options.seed);
  const std::filesystem::path path = tokenizer;
  const bool is_named_so = path.filename() == "tokenizer.model";
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  write(options, config, tensors, dtype, is_named_so ? folder : "");
  if (!tokenizer.empty() && !is_named_so) copy_file(tokenizer, options.out + "/tokenizer.model");
  if (tokenizer.empty()) {
    print_error(
        fmt::format("note: {} has no tokenizer and cannot generate text, but `decoscope bench step "
                    "--model {}` and `bench decode` can time it; --tokenizer adds one",
                    options.out, options.out));
  }
}

void make_scaled(const ModelCommandOptions& options) {
  const engine::ModelFiles files = open(options);
  const engine::ModelScale scale = engine::scale_from(options.scale);
  const engine::ModelConfig config = engine::scaled(files.config, scale);
  const kernels::DType dtype = dtype_or(options.dtype, files.stored_dtype);
  refuse_small_disk(options.out, config, dtype);
  const auto tensors = engine::scaled(files.tensors, files.config, scale);
  write(options, config, tensors, dtype, files.tokenizer ? files.path : "");
}

engine::ModelFiles open_to_judge(const ModelCommandOptions& options) {
  engine::ModelFiles files = open(options);
  if (!files.tokenizer)
    files.notices.push_back(
        files.path + ": no tokenizer, so it cannot generate text; `decoscope bench` can time it");
  return files;
}

/// Messages on faults that --scan finds in the weights of a model or draft heads.
std::vector<std::string> scan(const ModelCommandOptions& options) {
  if (names_heads(options.path, options.limits)) return scan_heads(options);
  const engine::ModelFiles files = open(options);
  return engine::non_finite_faults(
      *engine::stoppable(files.tensors, interrupted, "not all weights were checked"),
      engine::tensors_of(files.config));
}

/// @param with_validity  true: also reports `valid`
/// @return  the exit code: Cancelled if not all weights were read
int print_info(const engine::ModelFiles& files, bool as_json, bool with_validity = false) {
  const WeightsHash hash = hash_of(files);
  if (as_json) {
    json out = info_json(files, hash);
    if (with_validity) out["valid"] = hash ? json(true) : json(nullptr);
    if (!hash) out["stopped"] = true;
    print(dumped(out));
  } else {
    print(info_text(files, hash));
  }
  return hash ? 0 : static_cast<int>(ErrorCode::Cancelled);
}

int print_valid(const ModelCommandOptions& options) {
  if (names_heads(options.path, options.limits)) return heads_info(options);
  const engine::ModelFiles files = open_to_judge(options);
  if (options.json) return print_info(files, true, true);
  print(fmt::format("{}: valid, {} notices\n", files.path, files.notices.size()));
  for (const std::string& notice : files.notices) print("note: " + for_terminal(notice) + "\n");
  return 0;
}

/// Validates a model. With --json it also prints a document for an invalid model, besides the
/// error.
int validate(const ModelCommandOptions& options) {
  std::vector<std::string> faults;
  try {
    if (options.scan) faults = scan(options);
    if (faults.empty()) return print_valid(options);
    throw Error(ErrorCode::BadInput,
                faults.front() + (faults.size() == 1
                                      ? "; get the file again, or train with a lower rate"
                                      : fmt::format("; {} tensors hold some", faults.size())));
  } catch (const Error& error) {
    const bool stopped = error.code() == ErrorCode::Cancelled;
    if (options.json && (stopped || error.code() == ErrorCode::BadInput)) {
      json out = {{"path", options.path},
                  {"valid", stopped ? json(nullptr) : json(false)},
                  {"error", error.what()}};
      if (!faults.empty()) out["faults"] = faults;
      if (stopped) out["stopped"] = true;
      print(dumped(out));
    } else if (faults.size() > 1) {
      for (const std::string& fault : faults) print(for_terminal(fault) + "\n");
    }
    throw;
  }
}

/// Inputs of `random` and `scale`.
std::vector<engine::InputPath> read_by(const ModelCommandOptions& options) {
  using Kind = engine::InputPath::Kind;
  if (options.what == "scale") return {{.what = "the model", .path = model_folder(options.path)}};
  std::vector<engine::InputPath> inputs = {
      {.what = "--config", .path = options.config, .kind = Kind::File}};
  if (!options.heads.empty())
    inputs.push_back({.what = "--model", .path = model_folder(options.base)});
  if (!options.tokenizer.empty())
    inputs.push_back(
        {.what = "--tokenizer", .path = tokenizer_file(options.tokenizer), .kind = Kind::File});
  return inputs;
}

int list_architectures(bool as_json) {
  json list = json::array();
  std::string text;
  const auto add = [&text](const auto&... columns) {
    text += fmt::format("{:<20}{:<13}{:<20}{:<9}{}\n", columns...);
  };
  add("architecture", "model_type", "class", "GGUF", "differs from LLaMA by");
  for (const engine::Architecture& a : engine::architectures()) {
    list.push_back({{"name", a.name},
                    {"model_type", a.model_type},
                    {"class", a.class_name},
                    {"gguf", a.gguf},
                    {"notes", a.notes}});
    add(a.name, a.model_type, a.class_name, a.gguf, a.notes);
  }
  print(as_json ? dumped(list) : text);
  return 0;
}

}  // namespace

int model(const ModelCommandOptions& options) {
  if (options.what == "list") return list_models(options);
  if (options.what == "list-architectures") return list_architectures(options.json);
  if (options.what == "tree") return head_tree(options);
  if (options.what == "chat") return model_chat(options);
  if (options.what == "tokenize") return tokenize(options);
  if (options.what == "validate") return validate(options);
  if (options.what == "info") {
    if (names_heads(options.path, options.limits)) return heads_info(options);
    return print_info(open_to_judge(options), options.json);
  }
  if (options.what == "convert") {
    convert_model(options);
    return print_info(
        engine::open_model(options.out, {.needs_tokenizer = false, .limits = options.limits}),
        options.json);
  }
  if (options.what == "random" && options.config.empty() && options.heads.empty())
    throw Error(ErrorCode::Usage,
                "model random: found neither --config nor --heads; give one of them (--config "
                "assets/shapes/M.json, --heads medusa)");
  const engine::OutputFolder folder(options.out, engine::Existing::Nothing, read_by(options));
  int code = 0;
  try {
    if (!options.heads.empty())
      code = random_heads(options);
    else
      options.what == "random" ? make_random(options) : make_scaled(options);
  } catch (const Error&) {
    folder.remove_written_files();
    throw;
  }
  note_written_name(options.out);
  if (!options.heads.empty()) return code;
  return print_info(
      engine::open_model(options.out, {.needs_tokenizer = false, .limits = options.limits}),
      options.json);
}

}  // namespace app
