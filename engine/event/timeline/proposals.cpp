#include "engine/event/timeline/proposals.h"

namespace engine {

bool is_proposal(RowTag::Kind kind) {
  using Kind = RowTag::Kind;
  return kind == Kind::Draft || kind == Kind::Guess || kind == Kind::Block;
}

int depth_of(const TokenTree& tree, int row) {
  int depth = 0;
  for (; row >= 0 && is_proposal(tree.tag[row].kind); row = tree.parent[row]) ++depth;
  return depth;
}

float value_at(const std::vector<float>& list, int row) {
  return row >= 0 && static_cast<std::size_t>(row) < list.size() ? list[row] : -1;
}

}  // namespace engine
