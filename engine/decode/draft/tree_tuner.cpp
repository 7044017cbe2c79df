#include "engine/decode/draft/tree_tuner.h"

#include <algorithm>
#include <utility>

#include "engine/base/types.h"

namespace engine {
namespace {

constexpr std::size_t kTries = 2;       // number of steps after which a tree counts as measured
constexpr std::size_t kRemembered = 6;  // steps whose costs are kept
/// If the fastest of the later half of these steps differs by this factor from the fastest of the
/// earlier half, the load of the machine has changed, and the measurements of all other trees are
/// dropped.
constexpr double kChanged = 1.2;
/// A tree that was not used for this many steps is tried again if it would be the best one with a
/// cost of kHope times the measured one. Costs change: the sequence grows, and so may the load of
/// the machine.
constexpr std::int64_t kStale = 64;
constexpr double kHope = 0.9;
/// An untried tree is tried only after a tree with at least 1 / kGrowth of its rows was measured.
constexpr int kGrowth = 2;
/// The prior acceptance rate of each rank, and its weight in nodes.
constexpr std::array<double, 4> kSupposed = {0.6, 0.12, 0.05, 0.03};
constexpr double kSupposedNodes = 8;
/// After this many nodes all counts are halved.
constexpr double kForget = 512;

bool has_changed(const std::vector<double>& costs) {
  if (costs.size() < kRemembered) return false;
  const auto middle = costs.begin() + kRemembered / 2;
  const double before = *std::min_element(costs.begin(), middle);
  const double now = *std::min_element(middle, costs.end());
  return std::max(before, now) > kChanged * std::min(before, now);
}

}  // namespace

const std::vector<LevelCounts>& sized_trees() {
  static const std::vector<LevelCounts> trees = {
      {1},          {1, 1},       {1, 1, 1}, {2, 1},    {1, 1, 1, 1}, {1, 1, 1, 1, 1},
      {2, 1, 1},    {2, 1, 1, 1}, {3, 1, 1}, {2, 2, 1}, {3, 1, 1, 1}, {2, 2, 1, 1},
      {3, 2, 1, 1}, {4, 2, 1, 1}};
  return trees;
}

std::string name_of(const LevelCounts& tree) {
  std::string text;
  for (const int k : tree) text += (text.empty() ? "" : ",") + std::to_string(k);
  return text;
}

int rows_of(const LevelCounts& tree) {
  int rows = 1, width = 1;
  for (const int k : tree) rows += width *= k;
  return rows;
}

bool TreeTuner::Tried::is_known() const {
  return costs.size() >= kTries;
}

double TreeTuner::Tried::fastest() const {
  return std::ranges::min(costs);
}

TreeTuner::TreeTuner(std::vector<LevelCounts> trees) {
  ensure(!trees.empty(), "a tuner needs trees to choose from");
  for (LevelCounts& tree : trees) {
    const bool fits = !tree.empty() && std::ranges::min(tree) >= 1 &&
                      std::ranges::max(tree) <= static_cast<int>(kMaxWidth);
    ensure(fits, "a tuner's tree must have levels of 1 to 4 candidates");
    const int rows = rows_of(tree);
    trees_.push_back({.counts = std::move(tree), .rows = rows});
  }
  std::ranges::stable_sort(trees_, {}, &Tried::rows);
  for (std::size_t rank = 0; rank < kMaxWidth; rank++) {
    seen_[rank] = kSupposedNodes;
    kept_[rank] = kSupposedNodes * kSupposed[rank];
  }
}

void TreeTuner::add_cost(int place, double cost) {
  n_steps_++;
  Tried& tree = trees_[static_cast<std::size_t>(place)];
  if (tree.is_known() && n_steps_ - tree.last > kStale) tree.costs.clear();
  if (tree.costs.size() == kRemembered) tree.costs.erase(tree.costs.begin());
  tree.costs.push_back(cost);
  tree.last = n_steps_;
  if (has_changed(tree.costs)) forget_but(place);
}

void TreeTuner::forget_but(int place) {
  Tried& kept = trees_[static_cast<std::size_t>(place)];
  const std::vector<double> costs(kept.costs.end() - kRemembered / 2, kept.costs.end());
  for (Tried& tree : trees_) tree.costs.clear();
  kept.costs = costs;
}

void TreeTuner::add_verified(int n_children, int kept) {
  ensure(kept < n_children, "the accepted candidate must be one of the node's");
  if (seen_[0] > kForget) {
    for (double& n : seen_) n /= 2;
    for (double& n : kept_) n /= 2;
  }
  for (std::size_t rank = 0; rank < kMaxWidth && static_cast<int>(rank) < n_children; rank++) {
    seen_[rank]++;
    if (static_cast<int>(rank) == kept) kept_[rank]++;
  }
}

double TreeTuner::expected_tokens(int place) const {
  const LevelCounts& counts = at(place).counts;
  double below = 1;  // the target's own token after the last accepted one
  for (auto k = counts.rbegin(); k != counts.rend(); ++k) {
    double share = 0;
    for (std::size_t rank = 0; static_cast<int>(rank) < *k; rank++)
      share += kept_[rank] / seen_[rank];
    below = 1 + std::min(share, 1.0) * below;
  }
  return below;
}

/// The time of the tree's fastest step. If a larger tree was faster, the tree's own steps were
/// disturbed, and the larger tree's time is returned.
double TreeTuner::cost(const Tried& tree) const {
  double least = tree.fastest();
  for (const Tried& other : trees_) {
    const bool is_larger = other.rows >= tree.rows && other.counts.size() >= tree.counts.size();
    if (is_larger && other.is_known()) least = std::min(least, other.fastest());
  }
  return least;
}

double TreeTuner::rate(int place) const {
  return expected_tokens(place) / cost(at(place));
}

/// A lower bound of an untried tree's cost. It is the cost of the slowest measured tree with fewer
/// rows, plus, for every further row, half of the cost per row between the two largest of these
/// trees. If no smaller tree was measured, it is a larger tree's cost in proportion to the rows.
double TreeTuner::least_cost(const Tried& tree) const {
  const Tried *widest = nullptr, *before = nullptr;
  double dearest = 0;
  for (const Tried& other : trees_) {
    if (!other.is_known()) continue;
    if (other.rows > tree.rows) {
      if (!widest) dearest = cost(other) * tree.rows / other.rows;
      break;
    }
    dearest = std::max(dearest, cost(other));
    if (widest && other.rows > widest->rows) before = widest;
    widest = &other;
  }
  if (!before) return dearest;
  const double rise = (cost(*widest) - cost(*before)) / (widest->rows - before->rows);
  return dearest + std::max(0.0, rise / 2 * (tree.rows - widest->rows));
}

/// An upper bound of a tree's tokens per time; 0 if it should not be tried now.
double TreeTuner::hopeful_rate(int place) const {
  const Tried& tree = at(place);
  if (tree.is_known()) {
    const bool stale = n_steps_ - tree.last > kStale;
    return rate(place) / (stale ? kHope : 1);
  }
  int widest = 0;
  for (const Tried& other : trees_)
    if (other.is_known()) widest = std::max(widest, other.rows);
  if (widest == 0 || tree.rows > kGrowth * widest) return 0;
  const double least = std::max(least_cost(tree), tree.costs.empty() ? 0 : tree.fastest());
  return least > 0 ? expected_tokens(place) / least : 0;
}

int TreeTuner::choose() {
  int chosen = 0;  // the smallest tree, until one is measured
  double most = 0;
  for (int place = 0; place < static_cast<int>(trees_.size()); place++) {
    const double rate = hopeful_rate(place);
    if (rate > most) {
      most = rate;
      chosen = place;
    }
  }
  return chosen;
}

int TreeTuner::best() const {
  int found = 0;
  double most = 0;
  for (int place = 0; place < static_cast<int>(trees_.size()); place++) {
    if (!at(place).is_known() || rate(place) <= most) continue;
    most = rate(place);
    found = place;
  }
  return found;
}

}  // namespace engine
