// The weights of a model directory: one model.safetensors, or shards named by an index. Where both
// are there the single file is used, as in transformers, and a notice names the index.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

struct WeightFiles {
  std::shared_ptr<const TensorSource> tensors;
  std::vector<std::shared_ptr<const SafetensorsFile>> files;
};

/// @param allow_external  shards may be links that leave the directory
/// @throws Error(BadInput)
WeightFiles open_weights(const std::string& directory,
                         bool allow_external,
                         const FileLimits& limits,
                         std::vector<std::string>& notices);

/// One file of a directory that holds all of the weights.
/// @param allow_external  it may be a link that leaves the directory
/// @throws Error(BadInput)
WeightFiles open_weight_file(const std::string& directory,
                             const std::string& name,
                             bool allow_external,
                             const FileLimits& limits);

/// "layers.0.x" and "model.layers.0.x" give "model.layers.0.x"; names that never had the prefix
/// ("lm_head.weight") stay.
std::string full_name(const std::string& name);

/// The source under full names. A tensor that stands there under both is read from the full one.
/// @param notices  one line where bare names were found, naming one and how many were there twice
/// @return  `tensors` itself where no name is bare
std::shared_ptr<const TensorSource> with_full_names(std::shared_ptr<const TensorSource> tensors,
                                                    std::vector<std::string>& notices);

}  // namespace engine
