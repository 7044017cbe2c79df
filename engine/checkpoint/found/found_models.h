// Finds the models that other programs and the user keep on this machine. It reads only names of
// files and small manifests, no weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace engine {

/// A model on this machine that is not bundled.
struct FoundModel {
  /// the argument of --model: "hf:ORG/NAME", "ollama:NAME:TAG", else the name of the file or
  /// folder.
  std::string name;
  std::string path;    // Hugging Face directory or .gguf file (Ollama's have no suffix)
  std::string source;  // the place: "Hugging Face cache", "Ollama", ...
};

/// The layout of a folder with models.
enum class PlaceKind {
  HubCache,  // models--ORG--NAME/snapshots/REVISION, Hugging Face's
  Ollama,    // manifests/REGISTRY/NAMESPACE/NAME/TAG and blobs/sha256-DIGEST
  Folders,   // .gguf files and Hugging Face directories, at most four levels down
};

/// A folder where models may be.
struct ModelPlace {
  PlaceKind kind = PlaceKind::Folders;
  std::string folder;
  std::string source;  // its name for people
};

/// The folders in which this user may have models: the data folder, DECOSCOPE_MODELS (folders
/// separated by ':'), Hugging Face's cache (HF_HUB_CACHE, HF_HOME), LM Studio's folders, Ollama's
/// store (OLLAMA_MODELS) and llama.cpp's cache (LLAMA_CACHE). Folders that do not exist are
/// included; a folder that two variables name is included once. If DECOSCOPE_MODELS_ONLY is set,
/// only the folders of DECOSCOPE_MODELS.
std::vector<ModelPlace> model_places();

/// The folder of scripts/get_model.sh: $XDG_DATA_HOME/decoscope/models, else ~/.local/share/decoscope/models.
/// @return  empty: the user has no home folder
std::string models_data_folder();

/// Lists the models in these folders, sorted by name within each folder. Skips folders that cannot
/// be read. Reads at most 20,000 names per folder. Lists only the first part of a split file. If
/// two models have the same name, their names are prefixed with their parent folders.
std::vector<FoundModel> found_models(const std::vector<ModelPlace>& places);

/// The name of a model in the store of Hugging Face or Ollama: "hf:ORG/NAME" or "ollama:NAME:TAG".
/// @return  empty: the path is in no store
std::string name_in_store(const std::string& path);

/// The only .gguf model in a folder that is not a Hugging Face directory, else the path itself. Subfolders are not
/// searched.
/// @throws Error(BadInput)  if the folder has several .gguf models; the message lists them
std::string model_in_folder(const std::string& path);

/// Finds a model by its name, or by a part of its name that only one model has. Ignores the case of
/// ASCII letters. Returns its path.
/// @return  nullopt: there is none
/// @throws Error(Usage)  if several names contain it; the message lists them
std::optional<std::string> find_model_by_name(const std::string& name,
                                              const std::vector<FoundModel>& models);

}  // namespace engine
