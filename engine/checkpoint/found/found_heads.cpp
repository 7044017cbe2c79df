#include "engine/checkpoint/found/found_heads.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "engine/base/json.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/found/found_models.h"
#include "engine/checkpoint/model_files.h"
#include "engine/checkpoint/shared/model_name.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

/// The model named by the config.json of heads of this kind; empty if it describes no such heads.
std::string base_of_heads(const fs::path& directory, HeadsKind kind, const FileLimits& limits) {
  try {
    if (heads_kind(directory.string(), limits) != kind) return {};
    const Json config = read_json_file((directory / "config.json").string(), limits);
    const Json* base = config.find("base_model_name_or_path");
    return base && base->is(JsonReader::Kind::String) ? base->text : std::string();
  } catch (const Error&) {
    return {};  // a broken directory is reported when it is named
  }
}

/// The model whose embedding the draft in a directory shares; empty if it contains no such draft.
std::string target_of_directory(const fs::path& directory, const FileLimits& limits) {
  try {
    return named_target(directory.string(), limits).value_or("");
  } catch (const Error&) {
    return {};
  }
}

/// The first directory, by folder and then by name, for which `base_of` returns the model's name.
template <class BaseOf>
std::string first_directory(std::string_view model,
                            const std::vector<std::string>& folders,
                            BaseOf base_of) {
  for (const std::string& folder : folders) {
    std::error_code error;
    std::vector<fs::path> directories;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.is_directory(error)) directories.push_back(entry.path());
    std::ranges::sort(directories);
    for (const fs::path& directory : directories) {
      const std::string base = base_of(directory);
      if (!base.empty() && is_same_model(base, model)) return directory.string();
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> heads_folders(const std::string& assets_dir) {
  return {assets_dir + "/models", models_data_folder()};
}

std::string find_heads(std::string_view model,
                       HeadsKind kind,
                       const std::vector<std::string>& folders,
                       const FileLimits& limits) {
  return first_directory(model, folders, [&](const fs::path& directory) {
    return base_of_heads(directory, kind, limits);
  });
}

std::string find_draft(std::string_view model,
                       const std::vector<std::string>& folders,
                       const FileLimits& limits) {
  return first_directory(model, folders, [&](const fs::path& directory) {
    return target_of_directory(directory, limits);
  });
}

std::string draft_for(const ModelFiles& target,
                      const std::string& assets_dir,
                      const FileLimits& limits) {
  if (!target.draft_name.empty())
    return beside_or_named(target.path, target.draft_name, assets_dir);
  return find_draft(target.name, heads_folders(assets_dir), limits);
}

}  // namespace engine
