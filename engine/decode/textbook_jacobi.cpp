#include "engine/decode/textbook_jacobi.h"

namespace engine {

JacobiTrajectory textbook_jacobi(LanguageModel& model,
                                 Sequence& prefix,
                                 std::span<const TokenId> guess,
                                 const Sampling& sampling) {
  ensure(!guess.empty(), "a Jacobi block has at least one token");
  JacobiTrajectory trajectory;
  trajectory.points.emplace_back(guess.begin(), guess.end());
  TokenTree tree;
  for (;;) {
    const std::vector<TokenId>& point = trajectory.points.back();
    // The row before position i gives it: the prefix's last token, then all but the last guess.
    tree.clear();
    tree.add(prefix.last(), -1, RowTag{});
    for (std::size_t i = 0; i + 1 < point.size(); i++) {
      tree.add(point[i], static_cast<int>(i),
               RowTag{RowTag::Kind::Block, static_cast<std::int16_t>(i + 1), 0});
    }
    BatchItem item;
    item.cache = &prefix.cache();
    item.tree = &tree;
    item.prefix = prefix.cached_tokens();
    item.sampling = sampling;
    const std::vector<StepOutput> out = model.forward(std::span(&item, 1), Wants{});
    prefix.cache().commit({});
    trajectory.n_forwards++;
    std::vector<TokenId> refined;
    for (const kernels::Picked& picked : out.front().picked) refined.push_back(picked.id);
    if (refined == point) return trajectory;
    trajectory.points.push_back(std::move(refined));
  }
}

}  // namespace engine
