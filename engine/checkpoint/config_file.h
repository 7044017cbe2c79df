// config.json and generation_config.json, as transformers 4 and 5 write them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/config.h"
#include "engine/base/limits.h"
#include "kernels/dtype.h"

namespace engine {

class Fields;

struct ConfigFile {
  ModelConfig config;
  /// torch_dtype (4) or dtype (5), if it names one of ours.
  std::optional<kernels::DType> dtype;
  std::vector<std::string> notices;
};

/// Reads and checks one config.json. Nothing is divided or allocated before its range is known.
/// Members that have no effect here, and none is known to be harmless, are named in the notices.
/// @param needs_architectures  a model directory must say its architecture; a bare shape (`model
///                             random`) need not
/// @param context  positions a sequence may fill; 0: what the file says
/// @throws Error(BadInput)
ConfigFile read_config(const std::string& path,
                       bool needs_architectures,
                       const FileLimits& limits = {},
                       int context = 0);

/// The shape in a config.json without a model around it (`model random`).
/// @throws Error(BadInput)
ModelConfig read_model_config(const std::string& path, const FileLimits& limits = {});

/// The member eos_token_id: one id or several. Ids below 0 or beyond the vocabulary match no token:
/// they are left out with a notice, as transformers takes them.
/// @return  nullopt if the member is absent, null or an empty list
/// @throws Error(BadInput)  for anything but whole numbers
std::optional<std::vector<TokenId>> end_ids(const Fields& fields,
                                            int vocab_size,
                                            std::vector<std::string>& notices);

/// The name of a dtype in PyTorch and transformers: "bfloat16".
const char* torch_name(kernels::DType dtype);
/// The text of a config.json that transformers 4 and 5 both read.
std::string config_json(const ModelConfig& config, kernels::DType dtype);
/// The text of a generation_config.json with the model's bos, eos and pad ids.
std::string generation_config_json(const ModelConfig& config);

}  // namespace engine
