// Where a row of a step comes from, in words.
#pragma once

#include <string>

#include "engine/event/timeline/timeline.h"

namespace ui {

/// Whether a run's drafts come from draft heads: it was asked for a tree of their ranks. Head d
/// then fills depth d of the tree.
bool asks_heads(const engine::RunRecord& run);
/// "pool: guess 2, token 1", "draft: depth 2, rank 0", "draft head 2, rank 0".
std::string row_origin(engine::RowTag tag, bool by_heads);

}  // namespace ui
