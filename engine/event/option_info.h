// What a person may set of a decoder: plain data, so that the registry, the command line's help and
// the window, which does not link the decoders, share one definition.
#pragma once

#include <string>
#include <vector>

namespace engine {

struct OptionInfo {
  /// Counts: whole numbers with commas between, "2,2,1", each between min and max: how many
  /// candidates a tree has below each node, level by level; or one of `choices`. Tree: one of
  /// `choices`, or a .json file.
  enum class Type { Int, Float, Bool, Choice, Counts, Tree };
  std::string name;
  Type type = Type::Int;
  std::string default_value;
  double min = 0, max = 0;           // Int, Float, Counts
  std::vector<std::string> choices;  // Choice, Tree, Counts
  std::string help;                  // one sentence
  std::string below_zero{};  // what a value below 0 stands for, "the target's"; empty: nothing
};

}  // namespace engine
