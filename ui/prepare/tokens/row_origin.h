// The origin of a step's row in words.
#pragma once

#include <string>

#include "engine/base/token_tree.h"

namespace engine {
struct RunRecord;
}

namespace ui {

/// Returns true if draft heads propose in a run (its options have a tree of ranks). Head d then fills depth d of the tree.
bool drafts_by_heads(const engine::RunRecord& run);
/// The source of a run's proposals, as far as it changes how their tags read.
enum class Proposer { Other, Heads, Successors };
/// Returns the source of a run's proposals.
Proposer proposer_of(const engine::RunRecord& run);
/// Returns the origin: "pool: guess 2, token 1", "successor: depth 2, rank 0", "draft: depth 2, rank 0",
/// "draft head 2, rank 0".
std::string row_origin(engine::RowTag tag, Proposer proposer);

}  // namespace ui
