// A model on disk, opened and checked: shape, tensors, tokenizer. Nothing is packed yet.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/checkpoint/generation_file.h"
#include "engine/base/limits.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

struct ModelFiles {
  std::string path;  // the directory
  std::string name;  // its last component
  ModelConfig config;
  std::shared_ptr<const TensorSource> tensors;
  std::shared_ptr<const Tokenizer> tokenizer;  // null where the model has none (random models)
  kernels::DType stored_dtype = kernels::DType::F32;  // of most weights
  std::string draft_name;                             // the draft model its card names, or empty
  GenerationDefaults generation;
  std::vector<std::string> notices;  // what was odd and accepted, and what is not applied
};

struct OpenOptions {
  bool allow_external_shards = false;
  bool needs_tokenizer = true;
  GenerationUse generation = GenerationUse::NotApplied;
  int context = 0;  // positions a sequence may fill; 0: what config.json says
  FileLimits limits;
};

/// Opens a Hugging Face directory and checks everything it says against everything else:
/// shapes of all tensors the model will read included.
/// @throws Error(BadInput)  "file: field: found X, expected Y"
ModelFiles open_model(const std::string& directory, const OpenOptions& options = {});

/// The directory of a bundled model (`assets_dir`/models/NAME) or the directory a path names.
/// @throws Error(BadInput)  saying what was looked for and which models there are
std::string find_model(const std::string& name_or_path, const std::string& assets_dir);

/// Whether a name alone means two models: a bundled one and another folder of that name in the
/// current directory.
bool names_two_models(const std::string& name, const std::string& assets_dir);
/// A notice about a name that means two models: find_model() uses the bundled one, ./NAME is the
/// folder. Empty if the name means one model.
std::string notice_of_two_models(const std::string& name, const std::string& assets_dir);

/// What find_model takes for a model or heads that another one's card names: the directory of that
/// name beside it, where there is one, for a family that lies together; else the name.
/// @param directory  of the model whose card it is; of a bundled one the name is enough
std::string beside_or_named(const std::string& directory,
                            const std::string& name,
                            const std::string& assets_dir);

/// The model it was before consistency training, as its decoscope.json says; empty: it was none.
/// @throws Error(BadInput)  "file: field: found X, expected Y"
std::string name_before_training(const std::string& directory, const FileLimits& limits = {});

/// Writes a directory that open_model and transformers read: config.json, generation_config.json,
/// model.safetensors, tokenizer files copied from `tokenizer_from` (a directory) if not empty.
void write_model(const std::string& directory,
                 const ModelConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype,
                 const std::string& tokenizer_from);

/// Weights drawn from N(0, 0.02) (norms 1), a function of (seed, name, index) only.
std::shared_ptr<const TensorSource> random_tensors(const ModelConfig& config, std::uint64_t seed);

/// The same model enlarged without a change of what it computes (scale.cpp has the argument).
/// Tensors are made when read.
ModelConfig scaled(const ModelConfig& config, const ModelScale& scale);
std::shared_ptr<const TensorSource> scaled(std::shared_ptr<const TensorSource> tensors,
                                           const ModelConfig& config,
                                           const ModelScale& scale);

}  // namespace engine
