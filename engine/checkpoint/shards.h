// The weight files of a model directory: model.safetensors, or shards listed by an index. If both
// exist, the single file is used, as in transformers, and a notice names the index.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/tensor_source.h"

namespace engine {

/// The opened weight files of a model.
struct WeightFiles {
  std::shared_ptr<const TensorSource> tensors;
  std::vector<std::shared_ptr<const SafetensorsFile>> files;
};

/// Opens the weight files of a directory.
/// @param allow_external  accept shards that are links to files outside the directory
/// @throws Error(BadInput)
WeightFiles open_weights(const std::string& directory,
                         bool allow_external,
                         const FileLimits& limits,
                         std::vector<std::string>& notices);

/// Opens one file of a directory that has all weights.
/// @param allow_external  accept a link to a file outside the directory
/// @throws Error(BadInput)
WeightFiles open_weight_file(const std::string& directory,
                             const std::string& name,
                             bool allow_external,
                             const FileLimits& limits);

/// Adds the prefix "model." to a tensor name that lacks it: "layers.0.x" gives "model.layers.0.x".
/// Names without such a prefix in transformers ("lm_head.weight") are returned unchanged.
std::string full_name(const std::string& name);

/// Provides tensors under full_name(). If the source has a tensor under both its short and its full
/// name, the one with the full name is read.
/// @param notices  receives one notice if any name got the prefix
/// @return  `tensors` itself if all names are full
std::shared_ptr<const TensorSource> with_full_names(std::shared_ptr<const TensorSource> tensors,
                                                    std::vector<std::string>& notices);

}  // namespace engine
