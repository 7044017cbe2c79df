// The tree of guesses that draft heads fill: which ranks of which head hang below which. A tree is
// data (assets/trees, a file, one grown for a machine); its tokens are the heads' business.
//   path    [0, 2]: of the first head its likeliest token, below it the second head's third one
//   paper   Medusa (arXiv:2401.10774), sections 2.1.2 and 2.3.3
#pragma once

#include <span>
#include <string>
#include <vector>

namespace engine {

/// Nodes in the order of their length, then of their ranks; parents come first.
struct RankTree {
  std::string name;
  std::vector<int> parent;  // [n_nodes] -1: the last token of the text
  std::vector<int> depth;   // [n_nodes] from 1: head depth - 1 fills it
  std::vector<int> rank;    // [n_nodes] among that head's tokens, 0 the likeliest

  int n_nodes() const { return static_cast<int>(parent.size()); }
  int max_depth() const { return depth.empty() ? 0 : depth.back(); }
  /// Tokens that a head must rank for it: one more than the largest rank at this depth.
  int width_at(int depth) const;
  std::vector<int> path(int node) const;  // ranks from the first head on
};

/// Rows that one step may evaluate for a tree, the last token's included.
inline constexpr int kMaxTreeRows = 256;

/// @param what  it is, for messages
/// @throws Error(BadInput)  if a path is empty, stands there twice, has no parent, or there are too
/// many
RankTree rank_tree_of(std::vector<std::vector<int>> paths, const std::string& what);
/// A file {"paths": [[0], [0,0], ...]}, with "source", a note for people.
/// @throws Error(BadInput)
RankTree read_rank_tree(const std::string& path);
/// What read_rank_tree() reads.
std::string json_of(const RankTree& tree, const std::string& source);
/// The nodes no deeper than there are heads.
RankTree pruned(const RankTree& tree, int max_depth);

/// Names of the trees of assets/trees.
std::span<const char* const> bundled_trees();
/// @param name       one of bundled_trees(), "none" (a tree without nodes), or a .json file
/// @param trees_dir  where the named ones lie
/// @throws Error(BadInput)
RankTree find_rank_tree(const std::string& name, const std::string& trees_dir);

/// How often each head is right: [head][rank] the share of places where the head's token of that
/// rank is the target's own.
using HeadAccuracies = std::vector<std::vector<double>>;

/// A file {"heads": [[.7, .1, ...], ...], "prompts": N, "measured_on": "..."}.
/// @throws Error(BadInput)  if a share is not in [0, 1] or those of a head sum to more than 1
HeadAccuracies read_accuracies(const std::string& path);

/// The tree that is expected to be followed furthest with so many rows: from its likeliest node on,
/// always the neighbour (next sibling or first child) whose path is likeliest to come true.
/// @param n_rows  the last token's included, from 1
/// @return        fewer rows where the accuracies name no further node
RankTree grow_rank_tree(const HeadAccuracies& accuracies, int n_rows);
/// Tokens a step is expected to give: one, and for each node the chance that its path comes true.
double expected_tokens(const RankTree& tree, const HeadAccuracies& accuracies);

/// What a step of so many rows takes.
struct StepCost {
  int n_rows = 0;
  double ms = 0;
};
/// Rows for which a grown tree gives the most expected tokens a millisecond.
/// @param costs     rising in rows; between two the cost is taken to be a straight line
/// @param heads_ms  what asking the heads takes beside a step
int best_rows(const HeadAccuracies& accuracies, std::span<const StepCost> costs, double heads_ms);

}  // namespace engine
