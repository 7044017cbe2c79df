// Converts a model between a Hugging Face directory and a GGUF file, or to other types of weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/gguf/ggml_types.h"
#include "engine/checkpoint/model_files.h"

namespace engine {

/// Writes a model as a GGUF file, under a temporary name until it is complete. Weights, shape, RoPE,
/// tokenizer and chat template are kept.
/// @param type   of matrices; nullopt: keeps each type. Vectors are F32, as llama.cpp requires.
///               Matrices whose rows are not whole blocks of a quantised type become F16
/// @param notices  receives what could not be kept, and matrices of another type
/// @throws Error(BadInput)   the model has a part that GGUF files cannot have
/// @throws Error(Cancelled)  `progress` returned false; nothing was written
void write_gguf(const ModelFiles& files,
                const std::string& path,
                std::optional<GgmlType> type,
                const WriteProgress& progress,
                std::vector<std::string>& notices);

/// Writes a model as a Hugging Face directory.
/// @param dtype  of all weights. nullopt: no value changes. Quantised weights become f32; f32 norms
///               beside bf16 or f16 weights stay f32 if the smaller type cannot hold them
/// @param notices  receives what could not be kept
/// @throws Error  as write_gguf()
void write_directory(const ModelFiles& files,
                     const std::string& directory,
                     std::optional<kernels::DType> dtype,
                     const WriteProgress& progress,
                     std::vector<std::string>& notices);

}  // namespace engine
