#include "engine/decode/draft/rank_tree.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <numeric>

#include "engine/base/closest_name.h"
#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/refuse.h"
#include "engine/base/text.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr const char* kBundled[] = {"rows16",
                                    "rows8",
                                    "rows24",
                                    "chimera_23",
                                    "medusa_sim_7b_63",
                                    "medusa_vicuna_7b_63",
                                    "medusa_vicuna_13b_63",
                                    "medusa_vicuna_33b_63",
                                    "medusa_vicuna_7b_stage1_63",
                                    "medusa_vicuna_13b_stage1_63",
                                    "medusa_vicuna_33b_stage1_63",
                                    "medusa_zephyr_63"};
constexpr int kMaxRank = 4096;

using Path = std::vector<int>;

std::string shown(const Path& path) {
  std::string text = "[";
  for (const int rank : path) text += (text.size() > 1 ? ", " : "") + std::to_string(rank);
  return text + "]";
}

bool comes_before(const Path& a, const Path& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// The list under `key` of a file's JSON object.
const Json& list_of(const Json& json, const std::string& file, const char* key) {
  const Fields fields(json, file);
  const Json* list = fields.find(key);
  if (!list || !list->is(JsonReader::Kind::Array))
    fields.fail(key, list ? list->shown() : "none", "a list of lists");
  return *list;
}

/// Probability that every node of the path is accepted.
double chance(const Path& path, const HeadAccuracies& accuracies) {
  double product = 1;
  for (std::size_t d = 0; d < path.size(); d++) {
    const auto rank = static_cast<std::size_t>(path[d]);
    const bool known = d < accuracies.size() && rank < accuracies[d].size();
    product *= known ? accuracies[d][rank] : 0;
  }
  return product;
}

/// Milliseconds of a step, linearly interpolated.
double cost_of(int n_rows, std::span<const StepCost> costs) {
  const auto after =
      std::ranges::find_if(costs, [&](const StepCost& c) { return c.n_rows >= n_rows; });
  if (after == costs.begin() || after->n_rows == n_rows) return after->ms;
  const StepCost& before = *std::prev(after);
  const double part = static_cast<double>(n_rows - before.n_rows) / (after->n_rows - before.n_rows);
  return before.ms + part * (after->ms - before.ms);
}

}  // namespace

int RankTree::width_at(int at) const {
  int width = 0;
  for (std::size_t i = 0; i < depth.size(); i++)
    if (depth[i] == at) width = std::max(width, rank[i] + 1);
  return width;
}

std::vector<int> RankTree::path(int node) const {
  Path ranks;
  for (; node >= 0; node = parent[static_cast<std::size_t>(node)])
    ranks.push_back(rank[static_cast<std::size_t>(node)]);
  std::ranges::reverse(ranks);
  return ranks;
}

RankTree rank_tree_of(std::vector<std::vector<int>> paths, const std::string& what) {
  if (static_cast<int>(paths.size()) >= kMaxTreeRows)
    refuse(what, "paths", std::to_string(paths.size()),
           "at most " + std::to_string(kMaxTreeRows - 1) + " of them");
  std::ranges::sort(paths, comes_before);
  RankTree tree;
  tree.name = what;
  std::map<Path, int> node_of;
  for (const Path& path : paths) {
    if (path.empty()) refuse(what, "paths", "[]", "at least one rank in each");
    const Path above(path.begin(), path.end() - 1);
    const auto parent = node_of.find(above);
    if (!above.empty() && parent == node_of.end())
      refuse(what, "paths", shown(path) + " without " + shown(above), "every path's parent too");
    if (!node_of.emplace(path, tree.n_nodes()).second)
      refuse(what, "paths", shown(path) + " twice", "each path once");
    tree.parent.push_back(above.empty() ? -1 : parent->second);
    tree.depth.push_back(static_cast<int>(path.size()));
    tree.rank.push_back(path.back());
  }
  return tree;
}

RankTree read_rank_tree(const std::string& path) {
  const Json json = read_json_file(path, {});
  std::vector<Path> paths;
  for (const Json& item : list_of(json, path, "paths").items) {
    Path ranks;
    for (const Json& rank : item.items) {
      const auto number = rank.is(JsonReader::Kind::Number) ? rank.number().integer()
                                                            : std::optional<std::int64_t>();
      if (!number || *number < 0 || *number > kMaxRank)
        refuse(path, "paths", rank.shown(), "ranks of 0.." + std::to_string(kMaxRank));
      ranks.push_back(static_cast<int>(*number));
    }
    if (!item.is(JsonReader::Kind::Array)) refuse(path, "paths", item.shown(), "lists of ranks");
    paths.push_back(std::move(ranks));
  }
  RankTree tree = rank_tree_of(std::move(paths), path);
  tree.name = std::filesystem::path(path).stem().string();
  return tree;
}

std::string json_of(const RankTree& tree, const std::string& source) {
  constexpr std::size_t kLine = 96;
  std::string text = "{\"source\": " + json_quoted(source) + ",\n \"paths\": [";
  std::string line = "\n  ";
  for (int node = 0; node < tree.n_nodes(); node++) {
    std::string one = shown(tree.path(node));
    std::erase(one, ' ');
    const bool deeper = node > 0 && tree.depth[static_cast<std::size_t>(node)] !=
                                        tree.depth[static_cast<std::size_t>(node) - 1];
    if (deeper || line.size() + one.size() > kLine) {
      text += line;
      line = "\n  ";
    } else if (node > 0) {
      line += ' ';
    }
    line += one + (node + 1 < tree.n_nodes() ? "," : "");
  }
  return text + line + "\n]}\n";
}

RankTree pruned(const RankTree& tree, int max_depth) {
  RankTree kept;
  kept.name = tree.name;
  for (std::size_t i = 0; i < tree.depth.size() && tree.depth[i] <= max_depth; i++) {
    kept.parent.push_back(tree.parent[i]);
    kept.depth.push_back(tree.depth[i]);
    kept.rank.push_back(tree.rank[i]);
  }
  return kept;
}

std::span<const char* const> bundled_trees() {
  return kBundled;
}

RankTree find_rank_tree(const std::string& name, const std::string& trees_dir) {
  if (name == "none") return {.name = name, .parent = {}, .depth = {}, .rank = {}};
  if (name.ends_with(".json")) return read_rank_tree(name);
  if (std::find(std::begin(kBundled), std::end(kBundled), name) == std::end(kBundled)) {
    const std::vector<std::string> known(std::begin(kBundled), std::end(kBundled));
    refuse("tree", in_quotes(name), "no such name",
           "a .json file or a bundled tree" + did_you_mean(name, known));
  }
  return read_rank_tree(trees_dir + "/" + name + ".json");
}

HeadAccuracies read_accuracies(const std::string& path) {
  const Json json = read_json_input(path, {});
  HeadAccuracies accuracies;
  // Trees are grown from the shares along chains of right guesses, if they were measured.
  const char* measured = json.find("after_right") ? "after_right" : "heads";
  for (const Json& head : list_of(json, path, measured).items) {
    std::vector<double> shares;
    for (const Json& share : head.items) {
      const double value = share.is(JsonReader::Kind::Number) ? share.number().real() : -1;
      if (!(value >= 0 && value <= 1))
        refuse(path, measured, share.shown(), "shares between 0 and 1");
      shares.push_back(value);
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (shares.empty() || sum > 1 + 1e-6)
      refuse(path, measured, shares.empty() ? head.shown() : "shares that sum to more than 1",
             "for each head and rank the share of positions at which the token of that rank was "
             "right");
    accuracies.push_back(std::move(shares));
  }
  if (accuracies.empty()) refuse(path, measured, "[]", "a list for each head");
  return accuracies;
}

RankTree grow_rank_tree(const HeadAccuracies& accuracies, int n_rows) {
  ensure(n_rows >= 1, "n_rows must be at least 1");
  std::vector<Path> taken, neighbours;
  const auto consider = [&](Path path) {
    const std::size_t head = path.size() - 1;
    const bool known =
        head < accuracies.size() && static_cast<std::size_t>(path.back()) < accuracies[head].size();
    if (known) neighbours.push_back(std::move(path));
  };
  consider({0});
  while (static_cast<int>(taken.size()) + 1 < n_rows && !neighbours.empty()) {
    const auto best = std::ranges::max_element(neighbours, [&](const Path& a, const Path& b) {
      const double x = chance(a, accuracies), y = chance(b, accuracies);
      return x != y ? x < y : comes_before(b, a);
    });
    const Path path = *best;
    neighbours.erase(best);
    Path sibling = path, child = path;
    sibling.back()++;
    child.push_back(0);
    consider(std::move(sibling));
    consider(std::move(child));
    taken.push_back(path);
  }
  return rank_tree_of(std::move(taken), "grown");
}

double expected_tokens(const RankTree& tree, const HeadAccuracies& accuracies) {
  double tokens = 1;
  for (int node = 0; node < tree.n_nodes(); node++) tokens += chance(tree.path(node), accuracies);
  return tokens;
}

int best_rows(const HeadAccuracies& accuracies, std::span<const StepCost> costs, double heads_ms) {
  ensure(!costs.empty(), "the cost of at least one row count must be known");
  int best = 1;
  double most = 0;
  for (int n_rows = costs.front().n_rows; n_rows <= std::min(costs.back().n_rows, kMaxTreeRows);
       n_rows++) {
    const double heads = n_rows > 1 ? heads_ms : 0;
    const double gain = expected_tokens(grow_rank_tree(accuracies, n_rows), accuracies) /
                        (cost_of(n_rows, costs) + heads);
    if (gain > most) most = gain, best = n_rows;
  }
  return best;
}

}  // namespace engine
