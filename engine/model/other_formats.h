// What people have in place of a directory that is read: other formats of weights, a part of a
// model, an archive, the id of a model hub. The one place that names them and says the way on.
#pragma once

#include <string>
#include <vector>

#include "engine/model/json.h"

namespace engine {

struct OtherFormat {
  std::string found;   // "a GGUF file"; empty: nothing that is known
  std::string way_on;  // what to do next, a clause
  bool is_known() const { return !found.empty(); }
};

/// Of a path that was given for a directory and is none: a file of some kind, or nothing, which may
/// be meant for a hub.
OtherFormat in_place_of_directory(const std::string& path);

/// Of a directory without weights that are read: those in other formats, a model one folder below.
OtherFormat in_place_of_weights(const std::string& directory);

/// Of a config.json that was given for draft heads: drafts of other methods (EAGLE, Hydra, ...).
OtherFormat in_place_of_heads(const Json& config);

/// What a wrapper put before a tensor's name: "module." where `names` has "module.NAME"; empty:
/// none of them ends so.
std::string prefix_of_wrapper(const std::vector<std::string>& names, const std::string& name);

}  // namespace engine
