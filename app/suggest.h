// The nearest word a person may have meant.
#pragma once

#include <string>
#include <vector>

namespace app {

/// "; did you mean X?" for the nearest of `known` if any is near, else "".
std::string did_you_mean(const std::string& given, const std::vector<std::string>& known);

}  // namespace app
