#include "engine/base/closest_name.h"

#include <algorithm>
#include <vector>

namespace engine {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); i++) d[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); j++) d[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); i++) {
    for (std::size_t j = 1; j <= b.size(); j++) {
      const int replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({replace, d[i - 1][j] + 1, d[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string closest_name(std::string_view name, std::span<const std::string> known) {
  int best = std::max(2, static_cast<int>(name.size()) / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    int distance = edit_distance(name, candidate);
    // A prefix ("look" for "lookahead") counts as distance 1.
    if (name.size() >= 3 && candidate.starts_with(name)) distance = 1;
    if (distance < best) best = distance, nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::string nearest = closest_name(name, known);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace engine
