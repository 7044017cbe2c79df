// Options whose value is a tree: k_config, which spells it level by level, and `tree` of decoders
// with heads, which names one or a file. Looked at before any model is, and described to people.
#pragma once

#include <optional>
#include <string>

#include "engine/decode/registry.h"

namespace engine {

/// What a step drafts by a tree.
struct TreeShape {
  int n_tokens = 0;
  int depth = 0;  // 0: nothing is drafted
};

/// Of a tree option's value; nullopt where only the heads or the run know, or the option is no tree.
/// @param trees_dir  where the trees lie that are known by name
/// @throws Error(Usage, BadInput)  "medusa: tree: FILE: paths: found [2] twice, expected each path
///                                 once": naming decoder, option, and what is wrong
std::optional<TreeShape> tree_shape(const DecoderInfo& info,
                                    const OptionInfo& option,
                                    const std::string& value,
                                    const std::string& trees_dir);

/// Looks at every tree among a decoder's options.
/// @param options  complete
/// @throws Error(Usage, BadInput)  as tree_shape()
void check_trees(const DecoderInfo& info,
                 const OptionValues& options,
                 const std::string& trees_dir);

/// "10 tokens, 3 deep: 11 rows a step".
std::string words_of(const TreeShape& shape);

}  // namespace engine
