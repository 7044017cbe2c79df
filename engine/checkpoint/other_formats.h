// Recognises paths that are not a readable model directory: other formats of weights, a part of a
// model, an archive, the id of a model hub. Names each and says what to do.
#pragma once

#include <string>
#include <vector>

#include "engine/base/json.h"

namespace engine {

struct OtherFormat {
  std::string found;   // "a GGUF file"; empty: nothing that is known
  std::string way_on;  // what to do next, a clause
  bool is_known() const { return !found.empty(); }
};

/// Recognises a path that is not a directory: a file of some kind, or nothing with a name that may
/// be the id of a model hub.
OtherFormat in_place_of_directory(const std::string& path);

/// Recognises a directory without readable weights: other formats, a model one folder below.
OtherFormat in_place_of_weights(const std::string& directory);

/// Recognises a config.json of other drafts in place of heads (EAGLE, Hydra, ...).
OtherFormat in_place_of_heads(const Json& config);

/// The prefix that a wrapper put before a tensor's name: "module." if `names` has "module.NAME";
/// empty if no name ends so.
std::string prefix_of_wrapper(const std::vector<std::string>& names, const std::string& name);

}  // namespace engine
