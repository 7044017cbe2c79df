// The tree of tokens one step proposed, laid out: columns are depths, lines are leaves, and a first
// child stands on its parent's line.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/step_store.h"
#include "ui/widgets/theme.h"

namespace ui {

struct TreeNode {
  int row = -1;  // of the step's tree; -1: the target's own token behind the path taken
  engine::TokenId token = 0;
  int parent = -1;  // among the nodes, before this one; -1: the root
  int depth = 0;    // column
  int line = 0;     // from the top
  Mean mean = Mean::Prefix;
  bool on_path = false;    // the text took it
  float q = -1, p = -1;    // draft's and target's probability of it; -1: not told
  int n_hidden_below = 0;  // rows left out below it
};

struct TreeLayout {
  std::vector<TreeNode> nodes;  // parents first; empty: nothing was proposed
  int n_lines = 0, n_columns = 0;
  int n_proposed = 0, n_hidden = 0;
};

/// @param below  what was drafted less likely than this and never judged is left out, with all
///               below it
TreeLayout tree_layout(const engine::StepRecord& step, float below);

/// What stands over the columns where draft heads guess, each of which has one to itself: a name a
/// column, of a column of no head "".
std::vector<std::string> head_columns(const TreeLayout& layout);

/// The node at the end of the path the text took: the last token it took of those proposed, else
/// the target's own, else the root. The layout is not empty.
const TreeNode& end_of_path(const TreeLayout& layout);

/// Whether a row is a proposal: not the text's own, no window cell, no probe.
bool is_proposal(engine::RowTag::Kind kind);
/// What stands at a row of a list told for display; -1: it was not told.
float told_at(const std::vector<float>& list, int row);

}  // namespace ui
