// "did you mean": the known name nearest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace engine {

/// Least number of inserted, deleted, replaced or swapped neighbouring letters.
int edit_distance(std::string_view a, std::string_view b);
/// The nearest of `known`, or "" if none is within a third of the name's length (at least 2).
std::string closest_name(std::string_view name, std::span<const std::string> known);
/// For the end of a message: "; did you mean X?" for the nearest of `known`, "" if none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace engine
