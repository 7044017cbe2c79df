// The layout of the token tree of a step: one column per depth, one line per leaf; a first child is on the line of its parent.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/step_store.h"
#include "ui/widgets/theme.h"

namespace ui {

/// A node.
struct TreeNode {
  int row = -1;  // row of the step's tree; -1: the bonus token
  engine::TokenId token = 0;
  int parent = -1;  // index of an earlier node; -1: this is the root
  int depth = 0;    // depth in the tree, the column
  int line = 0;     // line from the top
  Mean mean = Mean::Prefix;
  bool on_path = false;    // the token is committed
  float q = -1, p = -1;    // probability under draft and target; -1: not recorded
  int n_hidden_below = 0;  // number of hidden rows below the node
};

/// All nodes.
struct TreeLayout {
  std::vector<TreeNode> nodes;  // parents first; empty if the step proposed no tokens
  int n_lines = 0, n_columns = 0;
  int n_proposed = 0, n_hidden = 0;
};

/// Lays out the tree of a step.
/// @param below  proposals with a lower q that were not verified are hidden, with everything below them
TreeLayout tree_layout(const engine::StepRecord& step, float below);

/// Returns the headings of the columns if draft heads propose: the name of the head, or "" for a column without one.
std::vector<std::string> head_columns(const TreeLayout& layout);

/// Returns the last accepted proposal, else the bonus token, else the root. The layout must not be empty.
const TreeNode& end_of_path(const TreeLayout& layout);

/// Returns the accepted row whose token the step committed at a position; -1 if no row proposed that token.
int accepted_row_at(const engine::StepRecord& step, int position);

}  // namespace ui
