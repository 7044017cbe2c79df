#include "engine/base/measure/spread.h"

#include <algorithm>
#include <cmath>

namespace engine {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto quantile = [&](double p) {
    const double at = p * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], at - std::floor(at));
  };
  return {quantile(0.25), quantile(0.5), quantile(0.75), static_cast<int>(values.size())};
}

}  // namespace engine
