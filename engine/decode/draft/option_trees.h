// Options whose value is a draft tree: k_config, which spells it level by level, and `tree` of
// decoders with draft heads, which names a bundled tree or a file. Checks such values before any
// model is loaded, and describes them for people.
#pragma once

#include <optional>
#include <string>

#include "engine/decode/registry.h"

namespace engine {

/// The shape of the tree that a tree option's value stands for; nullopt if only the heads or the
/// run know it, or if the option is not a tree.
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
