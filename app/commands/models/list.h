// The models that --model can name: the bundled ones and those found on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/model_files.h"

namespace app {

struct ModelCommandOptions;

/// A model as described by `model list` and by the model picker of the window.
struct ListedModel {
  std::string name;        // as --model accepts it
  std::string path;        // directory or file
  std::string source;      // "bundled", "Hugging Face cache", ...
  std::int64_t bytes = 0;  // of its files with weights; 0: unknown
  std::string type;        // of most weights: "Q4_1", "bf16"
  std::string architecture, licence;
  std::int64_t n_params = 0;
  int context = 0;  // positions
  /// Why the model cannot be used: it cannot be opened or does not fit in memory. Empty: it can be
  /// used.
  std::string unavailable;
  std::string draft_of;  // the target of a draft that has no embedding of its own; empty: a model
};

/// True if a folder contains draft heads instead of a model.
bool holds_heads(const std::filesystem::path& folder);

/// Lists all models with name, path and source, the bundled ones first. Opens none of them.
std::vector<ListedModel> models_on_this_machine();

/// Opens the model and fills in the other members. Errors go to `unavailable`.
/// @return  the opened model, without weights; nullopt if it cannot be opened
std::optional<engine::ModelFiles> describe_model(ListedModel& model,
                                                 const engine::OpenOptions& options);

/// `model list`. @return  the exit code
int list_models(const ModelCommandOptions& options);

}  // namespace app
