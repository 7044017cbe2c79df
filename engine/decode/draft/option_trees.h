// Options whose value is a draft tree. `k_config` gives the tree level by level. `tree` (of
// decoders with draft heads) names a bundled tree or a file. Checks such values before any model is
// loaded, and describes them in words.
#pragma once

#include <optional>
#include <string>

#include "engine/decode/registry.h"

namespace engine {

/// The shape of the tree that an option's value describes. nullopt if the option is not a tree, or
/// if the shape depends on the heads or on the run.
/// @param trees_dir  directory of the bundled trees
/// @throws Error(Usage, BadInput)  "medusa: tree: FILE: paths: found [2] twice, expected each path
///                                 once": names the decoder, the option and the fault
std::optional<TreeShape> tree_shape(const DecoderInfo& info,
                                    const OptionInfo& option,
                                    const std::string& value,
                                    const std::string& trees_dir);

/// Checks every tree among a decoder's options.
/// @throws Error(Usage, BadInput)  as tree_shape()
void check_trees(const DecoderInfo& info,
                 const OptionValues& options,
                 const std::string& trees_dir);

/// "10 tokens, 3 deep: 11 rows a step".
std::string words_of(const TreeShape& shape);

}  // namespace engine
