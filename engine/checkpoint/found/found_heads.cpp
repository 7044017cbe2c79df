#include "engine/checkpoint/found/found_heads.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "engine/base/json.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "q4_1", "iq2_xs", "bf16", "f16", "f32".
bool is_number_type(std::string_view name) {
  if (name == "bf16" || name == "f16" || name == "f32") return true;
  if (name.starts_with("i")) name.remove_prefix(1);
  return name.size() > 1 && name[0] == 'q' && is_digit(name[1]);
}

std::string plain_name(std::string_view name) {
  if (name.ends_with("/")) name.remove_suffix(1);
  std::string plain(name.substr(name.find_last_of('/') + 1));
  std::ranges::transform(plain, plain.begin(), [](unsigned char c) { return std::tolower(c); });
  if (plain.ends_with(".gguf")) plain.resize(plain.size() - 5);
  const std::size_t end = plain.find_last_of(".-");
  if (end != std::string::npos && end > 0 &&
      is_number_type(std::string_view(plain).substr(end + 1)))
    plain.resize(end);
  return plain;
}

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

bool is_same_model(std::string_view a, std::string_view b) {
  return plain_name(a) == plain_name(b);
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
