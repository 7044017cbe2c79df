#include "ui/prepare/mask.h"

#include <algorithm>

#include <fmt/format.h>

namespace ui {
namespace {

std::string purpose_of(engine::RowTag tag, bool by_heads) {
  using Kind = engine::RowTag::Kind;
  switch (tag.kind) {
    case Kind::Window:
      return fmt::format("window, level {}", tag.a);
    case Kind::Guess:
      return fmt::format("guess {}", tag.a + 1);
    case Kind::Draft:
      return fmt::format("{} {}", by_heads ? "draft head" : "draft, depth", tag.a);
    case Kind::Block:
      return "block";
    case Kind::Probe:
      return "answer probe";
    case Kind::Current:
      break;
  }
  return "last token of the text";
}

}  // namespace

bool Mask::seen(int row, int other) const {
  return std::ranges::binary_search(sees[row], other);
}

Mask mask_of(const engine::TokenTree& tree, bool by_heads) {
  Mask mask;
  mask.sees.resize(tree.token.size());
  for (int row = 0; row < tree.n_rows(); ++row) {
    if (tree.parent[row] >= 0) mask.sees[row] = mask.sees[tree.parent[row]];
    mask.sees[row].push_back(row);
    std::string name = purpose_of(tree.tag[row], by_heads);
    if (mask.regions.empty() || mask.regions.back().name != name)
      mask.regions.push_back({std::move(name), row, row});
    else
      mask.regions.back().last = row;
  }
  return mask;
}

}  // namespace ui
