// Recognises paths that are not a supported model directory: other weight formats, adapters,
// archives, ids of a model hub. The error messages then name the format and tell the user what to
// do.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"

namespace engine {

/// A recognised format that is not supported.
struct OtherFormat {
  std::string found;   // "a GGUF file"; empty if not recognised
  std::string advice;  // a clause that tells the user what to do instead
  /// True if the format was recognised.
  bool is_known() const { return !found.empty(); }
};

/// Recognises a path that is not a directory: a file, or a missing path that looks like the id of a
/// model hub.
OtherFormat recognise_path(const std::string& path);

/// Recognises a directory without supported weights: other formats, or a model in a subfolder.
OtherFormat recognise_directory(const std::string& directory);

/// Recognises a config.json of another speculative decoder (EAGLE, Hydra).
OtherFormat recognise_heads_config(const Json& config);

/// The prefix that a wrapper such as DataParallel added to a tensor's name: "module." if `names`
/// has "module.NAME"; empty if none.
std::string prefix_of_wrapper(const std::vector<std::string>& names, const std::string& name);

}  // namespace engine
