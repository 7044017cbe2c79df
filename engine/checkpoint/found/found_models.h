// Finds the models that other programs and the user keep on this machine. Only names of files and small manifests are
// read; nothing is opened for its weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace engine {

/// A model on this machine that is not bundled.
struct FoundModel {
  /// As --model accepts it: "hf:ORG/NAME", "ollama:NAME:TAG", else the name of the file or folder.
  std::string name;
  std::string path;    // a Hugging Face directory or a .gguf file (Ollama: a blob without a suffix)
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

/// The folders of this user: the data folder, DECOSCOPE_MODELS (folders separated by ':'), Hugging Face's cache
/// (HF_HUB_CACHE, HF_HOME), LM Studio's folders, Ollama's store (OLLAMA_MODELS) and llama.cpp's cache (LLAMA_CACHE).
/// Folders that do not exist are included; a folder that two variables name is included once. If DECOSCOPE_MODELS_ONLY is set, only the folders of DECOSCOPE_MODELS.
std::vector<ModelPlace> model_places();

/// The folder of scripts/get_model.sh: $XDG_DATA_HOME/decoscope/models, else ~/.local/share/decoscope/models.
/// @return  empty: the user has no home folder
std::string models_data_folder();

/// The models in these folders, in the folders' order, by name in each. A folder that cannot be read has none. Reads at
/// most 20,000 names a folder. Of a split file only the first part is listed. Two models with the same name get their
/// parent folder's name in front.
std::vector<FoundModel> found_models(const std::vector<ModelPlace>& places);

/// The name of a model in the store of another program: "hf:ORG/NAME" or "ollama:NAME:TAG".
/// @return  empty: the path is in no store
std::string name_in_store(const std::string& path);

/// The path of the model that a name means: the model with this name, else the only one whose name contains it,
/// ignoring the case of ASCII letters.
/// @return  nullopt: there is none
/// @throws Error(Usage)  several names contain it: names them
std::optional<std::string> find_model_by_name(const std::string& name,
                                              const std::vector<FoundModel>& models);

}  // namespace engine
