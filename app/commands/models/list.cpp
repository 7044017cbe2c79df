#include "app/commands/models/list.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/report.h"
#include "engine/base/table.h"
#include "engine/base/text.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/found/found_models.h"
#include "engine/checkpoint/gguf/gguf_file.h"
#include "engine/checkpoint/gguf/gguf_shards.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/model_files.h"
#include "engine/store/memory_plan.h"

namespace app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The size in bytes of a GGUF file with all its parts, or of a directory's *.safetensors.
std::int64_t weight_bytes(const std::string& path) {
  std::error_code error;
  std::int64_t bytes = 0;
  const auto add = [&](const fs::path& file) {
    const std::uintmax_t size = fs::file_size(file, error);
    if (!error) bytes += static_cast<std::int64_t>(size);
  };
  if (fs::is_regular_file(path, error)) {
    for (const std::string& part : engine::gguf_part_paths(path)) add(part);
    return bytes;
  }
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".safetensors") add(entry.path());
  return bytes;
}

/// The value of `license:` at the start of a model's README.md; empty if there is none.
std::string licence_in_card(const std::string& path) {
  constexpr int kMostLines = 100;
  constexpr std::string_view kKey = "license:";
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != "---") return {};
  for (int i = 0; i < kMostLines && std::getline(file, line) && line != "---"; i++) {
    if (!line.starts_with(kKey)) continue;
    const std::size_t at = line.find_first_not_of(" \"'", kKey.size());
    const std::size_t end = line.find_last_not_of(" \"'\r");
    return at == std::string::npos ? "" : line.substr(at, end - at + 1);
  }
  return {};
}

std::string licence_of(const engine::ModelFiles& files) {
  return files.gguf ? files.gguf->string("general.license").value_or("")
                    : licence_in_card(files.path + "/README.md");
}

/// Says why a model does not fit in memory; empty if it fits.
std::string why_too_large(const engine::ModelFiles& files) {
  const double needed = engine::default_memory_plan(files).needed();
  const auto available = static_cast<double>(engine::available_memory_bytes());
  if (needed <= available) return {};
  return fmt::format("needs {} of memory as {}, {} are available", engine::size_words(needed),
                     engine::stored_type_name(files), engine::size_words(available));
}

json json_of(const ListedModel& model) {
  return {{"name", model.name},
          {"path", model.path},
          {"source", model.source},
          {"bytes", model.bytes},
          {"type", model.type},
          {"architecture", model.architecture},
          {"parameters", model.n_params},
          {"context", model.context},
          {"licence", model.licence},
          {"unavailable", model.unavailable.empty() ? json(nullptr) : json(model.unavailable)}};
}

std::vector<std::string> row_of(const ListedModel& model) {
  return {model.name,         engine::size_words(static_cast<double>(model.bytes)),
          model.type,         fmt::format("{:.1f} M", static_cast<double>(model.n_params) * 1e-6),
          model.architecture, fmt::format("{}", model.context),
          model.source,       model.licence};
}

}  // namespace

bool holds_heads(const fs::path& folder) {
  try {
    return engine::heads_kind(folder.string()).has_value();
  } catch (const kernels::Error&) {
    return false;  // then the folder is listed as a model, with its error
  }
}

std::vector<ListedModel> models_on_this_machine() {
  std::vector<ListedModel> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(assets_dir() + "/models", error))
    if (entry.is_directory() && !holds_heads(entry.path()))
      models.push_back({.name = entry.path().filename().string(),
                        .path = entry.path().string(),
                        .source = "bundled"});
  std::ranges::sort(
      models, {}, [](const ListedModel& m) { return std::pair(m.name != "demo-target", m.name); });
  for (engine::FoundModel& found : engine::found_models(engine::model_places()))
    models.push_back({.name = std::move(found.name),
                      .path = std::move(found.path),
                      .source = std::move(found.source)});
  return models;
}

std::optional<engine::ModelFiles> describe_model(ListedModel& model,
                                                 const engine::OpenOptions& options) {
  model.bytes = weight_bytes(model.path);
  try {
    if (const auto target = engine::named_target(model.path, options.limits)) {
      model.draft_of = *target;
      model.unavailable = "a draft of " + engine::escaped(*target) + ", named by --draft";
      return std::nullopt;
    }
    engine::ModelFiles files = engine::open_model(engine::model_in_folder(model.path), options);
    model.type = engine::storage_words(files);
    model.architecture = files.config.model_type;
    model.n_params = files.config.n_params();
    model.context = files.config.max_seq_len;
    model.licence = licence_of(files);
    model.unavailable = why_too_large(files);
    return files;
  } catch (const kernels::Error& error) {
    model.unavailable = error.what();
    return std::nullopt;
  }
}

int list_models(const ModelCommandOptions& options) {
  std::vector<ListedModel> models = models_on_this_machine();
  for (ListedModel& model : models)
    describe_model(model, {.needs_tokenizer = false, .limits = options.limits});
  if (options.json) {
    json out = json::array();
    for (const ListedModel& model : models) out.push_back(json_of(model));
    print(dumped({{"models", out}}));
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"name", "size", "type", "parameters", "architecture", "context", "where", "licence"}};
  std::string refused;
  for (const ListedModel& model : models) {
    if (!model.draft_of.empty()) {
      refused += fmt::format("{} ({}): a draft of {} (--draft)\n", for_terminal(model.name),
                             model.source, for_terminal(model.draft_of));
      continue;
    }
    if (!model.unavailable.empty()) {
      refused += fmt::format("{} ({}): cannot be used: {}\n", for_terminal(model.name),
                             model.source, for_terminal(model.unavailable));
      continue;
    }
    rows.push_back(row_of(model));
    for (std::string& cell : rows.back()) cell = for_terminal(cell);
  }
  print(engine::aligned_table(rows) + refused);
  return 0;
}

}  // namespace app
