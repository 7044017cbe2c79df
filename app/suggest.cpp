#include "app/suggest.h"

#include <algorithm>
#include <numeric>

namespace app {
namespace {

/// Letters to insert, delete or change to turn a into b (Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); i++) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); j++) {
      const std::size_t changed = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& word : known) {
    const std::size_t distance = edit_distance(given, word);
    if (distance <= std::max<std::size_t>(1, word.size() / 3) &&
        (!best || distance < best_distance)) {
      best = &word;
      best_distance = distance;
    }
  }
  return best ? "; did you mean " + *best + "?" : "";
}

}  // namespace app
