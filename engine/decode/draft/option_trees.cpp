#include "engine/decode/draft/option_trees.h"

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/decode/draft/rank_tree.h"

namespace engine {
namespace {

/// True if the tree is the heads' own or chosen in every step.
bool depends_on_heads(const std::string& name) {
  return name == "own" || name == "auto";
}

}  // namespace

std::optional<TreeShape> tree_shape(const DecoderInfo& info,
                                    const OptionInfo& option,
                                    const std::string& value,
                                    const std::string& trees_dir) {
  const bool is_file = option.type == OptionInfo::Type::Tree;
  if (option.type != OptionInfo::Type::Counts && (!is_file || depends_on_heads(value)))
    return std::nullopt;
  const ParsedOptions options = parse_options(info.name, {{option.name, value}});
  if (!is_file) return options->draft_shape();
  try {
    const RankTree tree = find_rank_tree(value, trees_dir);
    return TreeShape{.n_tokens = tree.n_nodes(), .depth = tree.max_depth()};
  } catch (const Error& error) {
    throw Error(error.code(), info.name + ": " + option.name + ": " + error.what());
  }
}

void check_trees(const DecoderInfo& info,
                 const OptionValues& options,
                 const std::string& trees_dir) {
  for (const OptionInfo& option : info.options)
    if (const auto given = options.find(option.name); given != options.end())
      tree_shape(info, option, given->second, trees_dir);
}

std::string words_of(const TreeShape& shape) {
  if (shape.n_tokens == 0) return "drafts nothing: plain decoding";
  return fmt::format("{}, {} deep: {} rows a step", counted(shape.n_tokens, "token"), shape.depth,
                     shape.n_tokens + 1);
}

}  // namespace engine
