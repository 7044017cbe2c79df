// config.json and generation_config.json, as transformers 4 and 5 write them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/limits.h"
#include "engine/checkpoint/config.h"
#include "kernels/dtype.h"

namespace engine {

class Fields;
struct Json;

/// The contents of config.json.
struct ConfigFile {
  ModelConfig config;
  /// Member torch_dtype (transformers 4) or dtype (5); nullopt if absent or not supported.
  std::optional<kernels::DType> dtype;
  std::vector<std::string> notices;
};

/// Reads and validates a config.json. Each value's range is checked before it is used. Notices name
/// the members that are not supported, except those known to have no effect on the output.
/// @param needs_architectures  true: the member `architectures` is required, as in a model
///                             directory; false: it may be absent, as in a file for `model random`
/// @param context  maximum sequence length; 0: the length in the file
/// @throws Error(BadInput)
ConfigFile read_config(const std::string& path,
                       bool needs_architectures,
                       const FileLimits& limits = {},
                       int context = 0);

/// Validates a parsed config.json, or a text of the same form made from another file.
/// @param path  for messages; otherwise as read_config()
/// @throws Error(BadInput)
ConfigFile parse_config(const Json& json,
                        const std::string& path,
                        bool needs_architectures,
                        const FileLimits& limits = {},
                        int context = 0);

/// Reads the config.json of a model without weights (`model random`).
/// @throws Error(BadInput)
ModelConfig read_model_config(const std::string& path, const FileLimits& limits = {});

/// Reads member eos_token_id, one id or a list. Ids outside the vocabulary are ignored with a
/// notice, as in transformers.
/// @return  nullopt if the member is absent, null or an empty list
/// @throws Error(BadInput)  for anything but whole numbers
std::optional<std::vector<TokenId>> end_ids(const Fields& fields,
                                            int vocab_size,
                                            std::vector<std::string>& notices);

/// The name of a dtype in PyTorch and transformers: "bfloat16".
const char* torch_name(kernels::DType dtype);
/// The text of a config.json that transformers 4 and 5 can read.
std::string config_json(const ModelConfig& config, kernels::DType dtype);
/// The text of a generation_config.json with the model's bos, eos and pad ids.
std::string generation_config_json(const ModelConfig& config);

}  // namespace engine
