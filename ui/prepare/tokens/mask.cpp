#include "ui/prepare/tokens/mask.h"

#include <algorithm>

#include <fmt/format.h>

#include "ui/prepare/tokens/row_origin.h"

namespace ui {
namespace {

struct Purpose {
  std::string name, short_name;
};

Purpose purpose_of(engine::RowTag tag, Proposer proposer) {
  const bool by_heads = proposer == Proposer::Heads;
  using Kind = engine::RowTag::Kind;
  switch (tag.kind) {
    case Kind::Window:
      return {fmt::format("window, level {}", tag.a), fmt::format("w{}", tag.a)};
    case Kind::Guess:
      if (proposer == Proposer::Successors)
        return {fmt::format("successors, depth {}", tag.a), fmt::format("s{}", tag.a)};
      if (const char* text = copied_text(tag)) return {fmt::format("copy from {}", text), "copy"};
      return {fmt::format("guess {}", tag.a + 1), fmt::format("g{}", tag.a + 1)};
    case Kind::Draft:
      return {fmt::format("{} {}", by_heads ? "draft head" : "draft, depth", tag.a),
              fmt::format("{}{}", by_heads ? "h" : "d", tag.a)};
    case Kind::Block:
      return {"block", "b"};
    case Kind::Probe:
      return {"answer probe", "probe"};
    case Kind::Current:
      break;
  }
  return {"last committed token", "last"};
}

}  // namespace

bool Mask::seen(int row, int other) const {
  return std::ranges::binary_search(sees[row], other);
}

Mask mask_of(const engine::TokenTree& tree, Proposer proposer) {
  Mask mask;
  mask.sees.resize(tree.token.size());
  for (int row = 0; row < tree.n_rows(); ++row) {
    if (tree.parent[row] >= 0) mask.sees[row] = mask.sees[tree.parent[row]];
    mask.sees[row].push_back(row);
    Purpose purpose = purpose_of(tree.tag[row], proposer);
    if (mask.regions.empty() || mask.regions.back().name != purpose.name)
      mask.regions.push_back({std::move(purpose.name), std::move(purpose.short_name), row, row});
    else
      mask.regions.back().last = row;
  }
  return mask;
}

std::vector<std::string> region_heads(const Mask& mask,
                                      float cell,
                                      float right,
                                      const std::function<float(const std::string&)>& width) {
  std::vector<std::string> heads;
  for (const MaskRegion& region : mask.regions) {
    const bool is_last = &region == &mask.regions.back();
    const float begin = static_cast<float>(region.first) * cell;
    const float end = static_cast<float>(region.last + 1) * cell;
    const float room = (is_last ? std::max(end, right) : end) - begin;
    heads.emplace_back();
    for (const std::string* name : {&region.name, &region.short_name}) {
      if (width(*name) > room) continue;
      heads.back() = *name;
      break;
    }
  }
  return heads;
}

}  // namespace ui
