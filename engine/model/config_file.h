// config.json and generation_config.json, as transformers 4 and 5 write them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/limits.h"
#include "kernels/dtype.h"

namespace engine {

struct ConfigFile {
  ModelConfig config;
  /// torch_dtype (4) or dtype (5), if it names one of ours.
  std::optional<kernels::DType> dtype;
  std::vector<std::string> notices;
};

/// Reads and checks one config.json. Nothing is divided or allocated before its range is known.
/// @param needs_architectures  a model directory must say its architecture; a bare shape (`model
///                             random`) need not
/// @throws Error(BadInput)
ConfigFile read_config(const std::string& path,
                       bool needs_architectures,
                       const FileLimits& limits = {});

/// Replaces config's end-of-sequence ids by those of generation_config.json, if it has any, and
/// checks all special ids against the vocabulary.
void read_generation_config(const std::string& path, ConfigFile& file, const FileLimits& limits);

/// config.json in a form both versions read.
/// What PyTorch and transformers call a dtype: "bfloat16".
const char* torch_name(kernels::DType dtype);
std::string config_json(const ModelConfig& config, kernels::DType dtype);
std::string generation_config_json(const ModelConfig& config);

}  // namespace engine
