#include "ui/prepare/tokens/token_tree.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/proposals.h"
#include "ui/prepare/tokens/trajectory.h"

namespace ui {
namespace {

using engine::RowFate;

bool accepted(const engine::StepRecord& step, int row) {
  const auto at = static_cast<std::size_t>(row);
  return at < step.verified.fate.size() && step.verified.fate[at] == RowFate::Accepted;
}

class Maker {
 public:
  Maker(const engine::StepRecord& step, float below) : step_(step), below_(below) {
    const engine::TokenTree& tree = step.drafted.tree;
    children_.resize(tree.token.size());
    for (int row = 0; row < tree.n_rows(); ++row) {
      if (!is_proposal(tree.tag[row].kind)) continue;
      ++layout_.n_proposed;
      if (tree.parent[row] >= 0) children_[tree.parent[row]].push_back(row);
    }
  }

  TreeLayout made() {
    const int root = root_row();
    if (root < 0) return {};
    add(root, -1, 0, 0);
    add_bonus();
    for (const TreeNode& node : layout_.nodes)
      layout_.n_columns = std::max(layout_.n_columns, node.depth + 1);
    return std::move(layout_);
  }

 private:
  // Returns the row of the last committed token, the parent of the proposals.
  int root_row() const {
    for (int row = 0; row < step_.drafted.tree.n_rows(); ++row)
      if (!is_proposal(step_.drafted.tree.tag[row].kind) && !children_[row].empty()) return row;
    return -1;
  }

  bool hidden(int row) const {
    const float q = engine::value_at(step_.drafted.q, row);
    return q >= 0 && q < below_ && fate_of(step_, row) != Mean::Accepted &&
           fate_of(step_, row) != Mean::Rejected;
  }

  // Returns the meaning of a row; a row of the step in progress has no result yet, only an origin.
  Mean mean_of(int row) const {
    const Mean fate = fate_of(step_, row);
    const bool drafted = step_.drafted.tree.tag[row].kind == engine::RowTag::Kind::Draft;
    return fate == Mean::Pool && drafted ? Mean::Draft : fate;
  }

  int n_below(int row) const {
    int n = 1;
    for (const int child : children_[row]) n += n_below(child);
    return n;
  }

  void add(int row, int parent, int depth, int line) {
    const auto at = static_cast<int>(layout_.nodes.size());
    TreeNode node{.row = row, .token = step_.drafted.tree.token[row], .parent = parent};
    node.depth = depth;
    node.line = line;
    node.mean = depth == 0 ? Mean::Prefix : mean_of(row);
    node.on_path = depth == 0 || accepted(step_, row);
    if (depth > 0) node.q = engine::value_at(step_.drafted.q, row);
    node.p = engine::value_at(step_.verified.p, row);
    layout_.nodes.push_back(node);
    layout_.n_lines = std::max(layout_.n_lines, line + 1);
    bool first = true;
    for (const int child : children_[row]) {
      if (hidden(child)) {
        layout_.nodes[at].n_hidden_below += n_below(child);
        layout_.n_hidden += n_below(child);
        continue;
      }
      add(child, at, depth + 1, first ? line : layout_.n_lines);
      first = false;
    }
  }

  // Adds the bonus token after the last accepted row.
  void add_bonus() {
    const engine::Committed& c = step_.committed;
    if (c.tokens.empty() || c.status.empty() || c.status.back() != engine::TokenStatus::Bonus)
      return;
    int last = -1;
    for (std::size_t i = 0; i < layout_.nodes.size(); ++i)
      if (layout_.nodes[i].on_path) last = static_cast<int>(i);
    if (last < 0) return;
    const auto is_child = [last](const TreeNode& node) { return node.parent == last; };
    const bool alone = std::ranges::none_of(layout_.nodes, is_child);
    TreeNode bonus{.token = c.tokens.back(), .parent = last, .mean = Mean::Bonus, .on_path = true};
    bonus.depth = layout_.nodes[last].depth + 1;
    bonus.line = alone ? layout_.nodes[last].line : layout_.n_lines++;
    layout_.nodes.push_back(bonus);
  }

  const engine::StepRecord& step_;
  float below_;
  std::vector<std::vector<int>> children_;  // [n_rows] children that are proposals
  TreeLayout layout_;
};

}  // namespace

std::vector<std::string> head_columns(const TreeLayout& layout) {
  std::vector<std::string> names(static_cast<std::size_t>(layout.n_columns));
  for (const TreeNode& node : layout.nodes)  // the bonus token may be after the last draft head
    if (node.depth > 0 && node.row >= 0)
      names[static_cast<std::size_t>(node.depth)] = fmt::format("draft head {}", node.depth);
  return names;
}

const TreeNode& end_of_path(const TreeLayout& layout) {
  const TreeNode* end = &layout.nodes.front();
  for (const TreeNode& node : layout.nodes)
    if (node.on_path && (node.row >= 0 || end->depth == 0)) end = &node;
  return *end;
}

int accepted_row_at(const engine::StepRecord& step, int position) {
  int left = position - step.committed.first_pos;  // accepted rows on the path before it
  const auto n_committed = static_cast<int>(step.committed.tokens.size());
  if (!step.has_committed || left < 0 || left >= n_committed) return -1;
  // A parent is before its children, so the path has the order of the rows.
  for (int row = 0; row < step.drafted.tree.n_rows(); ++row)
    if (accepted(step, row) && left-- == 0) return row;
  return -1;
}

TreeLayout tree_layout(const engine::StepRecord& step, float below) {
  return step.has_drafted ? Maker(step, below).made() : TreeLayout{};
}

}  // namespace ui
