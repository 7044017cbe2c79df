#include "engine/decode/draft/option_trees.h"

#include <fmt/format.h>

#include "engine/decode/options.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/base/text.h"

namespace engine {
namespace {

constexpr const char* kOwnTree = "own";

TreeShape shape_of_counts(const DecoderInfo& info,
                          const OptionInfo& option,
                          const std::string& value) {
  const OptionValues checked = complete_options(info, {{option.name, value}});
  TreeShape shape;
  int width = 1;
  for (const int k : counts_option(checked, option.name)) {
    width *= k;
    shape.n_tokens += width;
    shape.depth++;
  }
  return shape;
}

}  // namespace

std::optional<TreeShape> tree_shape(const DecoderInfo& info,
                                    const OptionInfo& option,
                                    const std::string& value,
                                    const std::string& trees_dir) {
  if (option.type == OptionInfo::Type::Counts && value == kAuto) {
    complete_options(info, {{option.name, value}});
    return std::nullopt;
  }
  if (option.type == OptionInfo::Type::Counts) return shape_of_counts(info, option, value);
  if (option.type != OptionInfo::Type::Tree || value == kOwnTree) return std::nullopt;
  complete_options(info, {{option.name, value}});
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
