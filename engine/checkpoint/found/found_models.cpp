#include "engine/checkpoint/found/found_models.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/base/text.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/gguf/gguf_shards.h"
#include "engine/checkpoint/heads_files.h"
#include "kernels/error.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 4;
constexpr int kMaxNames = 20'000;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

bool is_gguf(const fs::path& path) {
  return lower(path.extension().string()) == ".gguf";
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Returns the sorted paths of a folder's entries; none if it cannot be read.
/// @param n_left  number of entries that may still be read; reduced by those read
std::vector<fs::path> names_in(const fs::path& folder, int& n_left) {
  std::vector<fs::path> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && n_left > 0;
       at.increment(error)) {
    names.push_back(at->path());
    n_left--;
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// True for a .gguf file that can be opened as a model: not a later part of a split file, and not
/// the projector of a vision model.
bool is_model_file(const fs::path& path) {
  if (!is_gguf(path)) return false;
  const std::string stem = lower(path.stem().string());
  if (stem.find("mmproj") != std::string::npos) return false;
  const std::size_t of = stem.rfind("-of-");
  return of == std::string::npos || of < 6 || stem.substr(of - 5, 5) == "00001";
}

bool is_model_directory(const fs::path& path) {
  return is_there(path / "config.json") &&
         (is_there(path / "model.safetensors") || is_there(path / "model.safetensors.index.json"));
}

// ---- folders of files and directories

void find_in_folder(const fs::path& folder,
                    const std::string& source,
                    int depth,
                    int& n_left,
                    std::vector<FoundModel>& found) {
  for (const fs::path& path : names_in(folder, n_left)) {
    if (path.filename().string().starts_with(".")) continue;
    if (is_model_file(path)) {
      found.push_back(
          {.name = gguf_model_name(path.string()), .path = path.string(), .source = source});
    } else if (is_model_directory(path)) {
      found.push_back({.name = path.filename().string(), .path = path.string(), .source = source});
    } else if (depth < kMaxDepth && is_folder(path) && !fs::is_symlink(path)) {
      find_in_folder(path, source, depth + 1, n_left, found);
    }
  }
}

// ---- Hugging Face's cache

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Returns the folder of the revision that refs/main names, else the folder whose name is last in
/// order.
fs::path current_snapshot(const fs::path& repository, int& n_left) {
  const std::string revision = first_line(repository / "refs/main");
  const fs::path main = repository / "snapshots" / revision;
  if (!revision.empty() && revision.find('/') == std::string::npos && is_folder(main)) return main;
  const std::vector<fs::path> all = names_in(repository / "snapshots", n_left);
  return all.empty() ? fs::path() : all.back();
}

void find_in_hub(const ModelPlace& place, int& n_left, std::vector<FoundModel>& found) {
  constexpr std::string_view kPrefix = "models--";
  for (const fs::path& repository : names_in(place.folder, n_left)) {
    std::string name = repository.filename().string();
    if (!name.starts_with(kPrefix)) continue;
    name = name.substr(kPrefix.size());
    if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
    const fs::path snapshot = current_snapshot(repository, n_left);
    if (snapshot.empty()) continue;
    if (is_model_directory(snapshot))
      found.push_back({"hf:" + name, snapshot.string(), place.source});
    std::vector<FoundModel> files;
    find_in_folder(snapshot, place.source, kMaxDepth - 1, n_left, files);
    for (FoundModel& file : files) {
      file.name = fmt::format("hf:{}{}{}", name, files.size() == 1 ? "" : ":",
                              files.size() == 1 ? "" : file.name);
      found.push_back(std::move(file));
    }
  }
}

// ---- Ollama's store

/// Returns the digest of the weights that a manifest names; empty if it names none.
/// @throws Error(BadInput)  the manifest is not JSON
fs::path blob_of(const fs::path& manifest, const fs::path& store) {
  constexpr std::string_view kModel = "application/vnd.ollama.image.model";
  const Json json = read_json_file(manifest.string(), FileLimits{});
  const Json* layers = json.find("layers");
  if (!layers) return {};
  for (const Json& layer : layers->items) {
    const Json *type = layer.find("mediaType"), *digest = layer.find("digest");
    if (!type || !digest || type->text != kModel) continue;
    std::string name = digest->text;
    std::replace(name.begin(), name.end(), ':', '-');
    if (name.find('/') == std::string::npos && is_there(store / "blobs" / name))
      return store / "blobs" / name;
  }
  return {};
}

/// Returns NAME:TAG, preceded by the namespace unless that is Ollama's default (library).
std::string ollama_name(const fs::path& manifest, const fs::path& manifests) {
  std::vector<std::string> parts;
  for (const fs::path& part : manifest.lexically_relative(manifests))
    parts.push_back(part.string());
  std::string name = "ollama:";
  for (std::size_t i = 1; i + 2 < parts.size(); i++)
    if (parts[i] != "library") name += parts[i] + "/";
  return parts.size() < 2 ? "" : name + parts[parts.size() - 2] + ":" + parts.back();
}

void find_manifests(const fs::path& folder,
                    int depth,
                    int& n_left,
                    std::vector<fs::path>& manifests) {
  for (const fs::path& path : names_in(folder, n_left)) {
    if (!is_folder(path))
      manifests.push_back(path);
    else if (depth < kMaxDepth && !fs::is_symlink(path))
      find_manifests(path, depth + 1, n_left, manifests);
  }
}

void find_in_ollama(const ModelPlace& place, int& n_left, std::vector<FoundModel>& found) {
  const fs::path store = place.folder, root = store / "manifests";
  std::vector<fs::path> manifests;
  find_manifests(root, 1, n_left, manifests);
  for (const fs::path& manifest : manifests) {
    try {
      const fs::path blob = blob_of(manifest, store);
      const std::string name = ollama_name(manifest, root);
      if (!blob.empty() && !name.empty()) found.push_back({name, blob.string(), place.source});
    } catch (const kernels::Error&) {
      continue;  // not a manifest
    }
  }
}

/// Adds the name of the parent folder to names that occur twice.
void make_unique(std::vector<FoundModel>& models) {
  std::map<std::string, int> n_of;
  for (const FoundModel& model : models) n_of[model.name]++;
  for (FoundModel& model : models)
    if (n_of[model.name] > 1 && model.name.find(':') == std::string::npos)
      model.name = fs::path(model.path).parent_path().filename().string() + "/" + model.name;
}

/// Removes a place if an earlier place is the same folder, for example through a symbolic link.
void remove_repeated(std::vector<ModelPlace>& places) {
  std::set<std::pair<PlaceKind, fs::path>> known;
  std::erase_if(places, [&](const ModelPlace& place) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(place.folder, error);
    return !error && !known.emplace(place.kind, real).second;
  });
}

std::string home_or(const char* variable_name, const std::string& under_home) {
  if (const std::string given = variable(variable_name); !given.empty()) return given;
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + under_home;
}

std::string hub_cache() {
  if (const std::string given = variable("HF_HUB_CACHE"); !given.empty()) return given;
  const std::string cache = home_or("XDG_CACHE_HOME", "/.cache");
  const std::string home = variable("HF_HOME");
  return (home.empty() ? cache + "/huggingface" : home) + "/hub";
}

}  // namespace

std::string models_data_folder() {
  const std::string data = home_or("XDG_DATA_HOME", "/.local/share");
  return data.empty() ? "" : data + "/decoscope/models";
}

std::vector<ModelPlace> model_places() {
  const std::string home = variable("HOME");
  std::vector<ModelPlace> places;
  std::stringstream given(variable("DECOSCOPE_MODELS"));
  for (std::string folder; std::getline(given, folder, ':');)
    if (!folder.empty()) places.push_back({PlaceKind::Folders, folder, "DECOSCOPE_MODELS"});
  if (!variable("DECOSCOPE_MODELS_ONLY").empty()) return places;
  places.insert(places.begin(), {PlaceKind::Folders, models_data_folder(), "data folder"});
  places.push_back({PlaceKind::HubCache, hub_cache(), "Hugging Face cache"});
  places.push_back({PlaceKind::Ollama, home_or("OLLAMA_MODELS", "/.ollama/models"), "Ollama"});
  places.push_back({PlaceKind::Ollama, "/usr/share/ollama/.ollama/models", "Ollama"});
  if (!home.empty()) {
    places.push_back({PlaceKind::Folders, home + "/.lmstudio/models", "LM Studio"});
    places.push_back({PlaceKind::Folders, home + "/.cache/lm-studio/models", "LM Studio"});
  }
  const std::string cache = home_or("XDG_CACHE_HOME", "/.cache");
  const std::string llama_cpp = variable("LLAMA_CACHE");
  places.push_back({PlaceKind::Folders, llama_cpp.empty() ? cache + "/llama.cpp" : llama_cpp,
                    "llama.cpp cache"});
  std::erase_if(places, [](const ModelPlace& place) { return place.folder.empty(); });
  remove_repeated(places);
  return places;
}

std::vector<FoundModel> found_models(const std::vector<ModelPlace>& places) {
  std::vector<FoundModel> found;
  for (const ModelPlace& place : places) {
    int n_left = kMaxNames;
    if (place.kind == PlaceKind::HubCache) find_in_hub(place, n_left, found);
    if (place.kind == PlaceKind::Ollama) find_in_ollama(place, n_left, found);
    if (place.kind == PlaceKind::Folders)
      find_in_folder(place.folder, place.source, 1, n_left, found);
  }
  make_unique(found);
  return found;
}

std::string name_in_store(const std::string& path) {
  const bool may_be =
      path.find("/snapshots/") != std::string::npos || path.find("/blobs/") != std::string::npos;
  if (!may_be) return {};
  for (const FoundModel& model : found_models(model_places()))
    if (model.path == path && model.name.find(':') != std::string::npos) return model.name;
  return {};
}

std::string model_in_folder(const std::string& path) {
  if (!is_folder(path) || is_model_directory(path)) return path;
  int n_left = kMaxNames;
  std::vector<fs::path> files = names_in(path, n_left);
  std::erase_if(files, [](const fs::path& file) { return !is_model_file(file); });
  if (files.empty()) return path;
  if (files.size() == 1) return files.front().string();
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(escaped(file.filename().string()));
  refuse(path, "model",
         fmt::format("a folder with {} .gguf files: {}", names.size(), fmt::join(names, ", ")),
         "the path of one of them");
}

namespace {

/// True for a directory of draft heads, or of a draft that shares its target's embedding: it cannot
/// be opened alone.
bool belongs_to_a_model(const std::string& path) {
  try {
    return heads_kind(path) || named_target(path, {});
  } catch (const Error&) {
    return false;  // a broken file is reported when it is opened
  }
}

}  // namespace

std::optional<std::string> find_model_by_name(const std::string& name,
                                              const std::vector<FoundModel>& models) {
  const std::string wanted = lower(name);
  if (wanted.empty()) return std::nullopt;
  std::vector<const FoundModel*> partial;
  for (const FoundModel& model : models) {
    const std::string known = lower(model.name);
    if (known == wanted || known == wanted + ":latest") return model.path;
    if (known.find(wanted) != std::string::npos) partial.push_back(&model);
  }
  // Heads and drafts of a model often have its name in theirs.
  if (partial.size() > 1)
    std::erase_if(partial, [](const FoundModel* model) { return belongs_to_a_model(model->path); });
  if (partial.empty()) return std::nullopt;
  if (partial.size() == 1) return partial.front()->path;
  std::vector<std::string> names;
  for (const FoundModel* model : partial) names.push_back(escaped(model->name));
  throw kernels::Error(
      kernels::ErrorCode::Usage,
      fmt::format("{}: {} models have this in their names: {}; give more of the name",
                  escaped(name), names.size(), fmt::join(names, ", ")));
}

}  // namespace engine
