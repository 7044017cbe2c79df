// Opens and validates a model, a Hugging Face directory or a GGUF file: configuration, tensors and
// tokenizer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/opened_model.h"

namespace engine {

/// Opens a Hugging Face directory or a GGUF file and checks that its parts agree, including the
/// shapes of all tensors. "MODEL+ADAPTER" merges an adapter into it (adapter/lora_adapter.h).
/// @throws Error(BadInput)  "file: field: found X, expected Y"
ModelFiles open_model(const std::string& path, const OpenOptions& options = {});

/// Resolves the name of a bundled model (`assets_dir`/models/NAME), or the path of a GGUF file, of
/// a folder with one or of a Hugging Face directory. "MODEL+ADAPTER" gives the path of MODEL, then
/// "+ADAPTER". The folder of an adapter gives the path of its base model, then "+" and the folder.
/// @throws Error(BadInput)  not found; the message lists the models available
std::string find_model(const std::string& name_or_path, const std::string& assets_dir);

/// True if a name is ambiguous: a bundled model and a different folder in the current directory.
bool is_ambiguous_model_name(const std::string& name, const std::string& assets_dir);
/// A notice about an ambiguous name: find_model() uses the bundled model; ./NAME selects the
/// folder. Empty if the name is not ambiguous.
std::string ambiguous_name_notice(const std::string& name, const std::string& assets_dir);

/// Resolves the name of a model or of draft heads in a model's card to an argument of find_model():
/// the sibling directory with this name if there is one, else the name itself.
/// @param directory  the directory or bundled name of the model with the card
std::string beside_or_named(const std::string& directory,
                            const std::string& name,
                            const std::string& assets_dir);

/// The base model of a consistency-trained model, named by its decoscope.json; empty if none.
/// @throws Error(BadInput)  "file: field: found X, expected Y"
std::string name_before_training(const std::string& directory, const FileLimits& limits = {});

/// Writes a directory that open_model() and transformers can read: config.json,
/// generation_config.json, model.safetensors and, unless `tokenizer_from` is empty, the tokenizer
/// files of that directory, or of that GGUF file.
void write_model(const std::string& directory,
                 const ModelConfig& config,
                 const TensorSource& tensors,
                 kernels::DType dtype,
                 const std::string& tokenizer_from);

/// Reports the bytes of weights written so far and in all; returns false to cancel.
using WriteProgress = std::function<bool(std::int64_t done, std::int64_t total)>;

/// write_model() without the tokenizer's files.
/// @param dtype  nullopt: each tensor as stored, without a change of any value. Quantised weights
///               become f32; vectors in f32 become `main` if that holds their values
/// @param main   of most weights, for config.json
/// @throws Error(Cancelled)  `progress` returned false
void write_weights(const std::string& directory,
                   const ModelConfig& config,
                   const TensorSource& tensors,
                   std::optional<kernels::DType> dtype,
                   kernels::DType main,
                   const WriteProgress& progress);

/// Copies the tokenizer's files of a directory to another, or writes those of a GGUF file.
void copy_tokenizer(const std::string& from, const std::string& to);

/// Random weights drawn from N(0, 0.02); norms are 1 with their offset. Each value depends only on (seed, name,
/// index).
std::shared_ptr<const TensorSource> random_tensors(const ModelConfig& config, std::uint64_t seed);

/// The configuration of an enlarged model that computes the same function (scale.cpp explains why).
ModelConfig scaled(const ModelConfig& config, const ModelScale& scale);
/// The tensors of the enlarged model. Each is computed when it is read.
std::shared_ptr<const TensorSource> scaled(std::shared_ptr<const TensorSource> tensors,
                                           const ModelConfig& config,
                                           const ModelScale& scale);

}  // namespace engine
