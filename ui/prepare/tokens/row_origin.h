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
/// Returns the origin: "pool: guess 2, token 1", "draft: depth 2, rank 0", "draft head 2, rank 0".
std::string row_origin(engine::RowTag tag, bool by_heads);

}  // namespace ui
