// The shape of the tree that draft heads fill: each node is a rank of one head, and its parent a
// rank of the head before. The tree is data (from assets/trees, from a file, or grown for a
// machine); the heads provide the tokens.
//   path    [0, 2]: the first head's likeliest token, then the second head's third one
//   paper   Medusa (arXiv:2401.10774), sections 2.1.2 and 2.3.3
#pragma once

#include <span>
#include <string>
#include <vector>

namespace engine {

/// A tree of ranks. Nodes are ordered by depth, then by ranks, so parents come first.
struct RankTree {
  std::string name;
  std::vector<int> parent;  // [n_nodes] -1: the last emitted token
  std::vector<int> depth;   // [n_nodes] from 1; head depth - 1 fills the node
  std::vector<int> rank;    // [n_nodes] among that head's tokens, 0 the likeliest

  /// Number of nodes, without the root.
  int n_nodes() const { return static_cast<int>(parent.size()); }
  /// Depth of the deepest node; 0: no nodes.
  int max_depth() const { return depth.empty() ? 0 : depth.back(); }
  /// Number of tokens that the head for this depth must rank: its largest rank + 1.
  int width_at(int depth) const;
  /// The ranks from the first head to this node.
  std::vector<int> path(int node) const;
};

/// Most rows that a step may evaluate for a tree, including the last token's.
inline constexpr int kMaxTreeRows = 256;

/// Builds a tree from its nodes' paths.
/// @param what  name of the source, for messages
/// @throws Error(BadInput)  if a path is empty, occurs twice or lacks its parent, or if there are
///                          too many
RankTree rank_tree_of(std::vector<std::vector<int>> paths, const std::string& what);
/// Reads a file {"paths": [[0], [0,0], ...], "source": "a note for readers"}.
/// @throws Error(BadInput)  if the file cannot be read or has the wrong form
RankTree read_rank_tree(const std::string& path);
/// The text of a file that read_rank_tree() can read.
std::string json_of(const RankTree& tree, const std::string& source);
/// The nodes with depth at most max_depth.
RankTree pruned(const RankTree& tree, int max_depth);

/// Names of the trees in assets/trees.
std::span<const char* const> bundled_trees();
/// Finds and reads a tree.
/// @param name       one of bundled_trees(), "none" (a tree without nodes), or a .json file
/// @param trees_dir  directory of the bundled trees
/// @throws Error(BadInput)  for an unknown name, or as read_rank_tree()
RankTree find_rank_tree(const std::string& name, const std::string& trees_dir);

/// Accuracies of draft heads: [head][rank] the share of positions where the head's token of that
/// rank is the target's.
using HeadAccuracies = std::vector<std::vector<double>>;

/// Reads a file {"heads": [[.7, .1, ...], ...], "prompts": N, "measured_on": "..."}. A member
/// "after_right" of the same form, shares where the guesses of the heads before were right, is read
/// instead of "heads".
/// @throws Error(BadInput)  if a share is not in [0, 1] or those of a head sum to more than 1
HeadAccuracies read_accuracies(const std::string& path);

/// Grows the tree with the most expected tokens for a number of rows: repeatedly adds the neighbour
/// (next sibling or first child) whose path is most likely to be accepted (Medusa, section 2.3.3).
/// @param n_rows  including the last token's, at least 1
/// @return        has fewer rows if the accuracies know no further node
RankTree grow_rank_tree(const HeadAccuracies& accuracies, int n_rows);
/// Expected tokens of a step: 1 plus the sum over nodes of the probability that the node's path is
/// accepted.
double expected_tokens(const RankTree& tree, const HeadAccuracies& accuracies);

/// The measured time of a step with a number of rows.
struct StepCost {
  int n_rows = 0;
  double ms = 0;
};
/// The number of rows for which a grown tree has the most expected tokens per millisecond.
/// @param costs     ordered by rows; linearly interpolated between them
/// @param heads_ms  time of the heads per step
int best_rows(const HeadAccuracies& accuracies, std::span<const StepCost> costs, double heads_ms);

}  // namespace engine
