// The description of a decoder's option: plain data that the registry, the command line's help and
// the window share. The window does not link the decoders.
#pragma once

#include <string>
#include <vector>

namespace engine {

/// One option of a decoder.
struct OptionInfo {
  /// The values that the option takes. Counts: whole numbers from min to max, comma-separated
  /// ("2,2,1"): for each level of a tree, the number of candidates below each node; or one of
  /// `choices`. Int: also one of `choices` ("auto"). Tree: one of `choices`, or a .json file.
  enum class Type { Int, Float, Bool, Choice, Counts, Tree };
  std::string name;
  Type type = Type::Int;
  std::string default_value;
  double min = 0, max = 0;           // Int, Float, Counts
  std::vector<std::string> choices;  // Choice, Tree, Counts, Int
  std::string help;                  // one sentence
  std::string below_zero{};          // the meaning of values below 0, "the target's"; empty: none
};

}  // namespace engine
