#include "engine/checkpoint/found/found_heads.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "engine/base/json.h"
#include "engine/checkpoint/found/found_models.h"
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

}  // namespace

std::vector<std::string> heads_folders(const std::string& assets_dir) {
  return {assets_dir + "/models", models_data_folder()};
}

std::string find_heads(std::string_view model,
                       HeadsKind kind,
                       const std::vector<std::string>& folders,
                       const FileLimits& limits) {
  for (const std::string& folder : folders) {
    std::error_code error;
    std::vector<fs::path> directories;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.is_directory(error)) directories.push_back(entry.path());
    std::ranges::sort(directories);
    for (const fs::path& directory : directories) {
      const std::string base = base_of_heads(directory, kind, limits);
      if (!base.empty() && is_same_model(base, model)) return directory.string();
    }
  }
  return {};
}

}  // namespace engine
