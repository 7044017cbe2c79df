// "did you mean": finds the known name that is closest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace engine {

/// Edit distance: the minimum number of insertions, deletions, replacements and swaps of
/// neighbours.
int edit_distance(std::string_view a, std::string_view b);
/// The name in `known` with the smallest edit distance; "" if the distance exceeds a third of the
/// name's length (at least 2).
std::string closest_name(std::string_view name, std::span<const std::string> known);
/// "; did you mean X?" for the end of a message; "" if no known name is close.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace engine
