// Rows of a step that propose a token.
#pragma once

#include <vector>

#include "engine/base/token_tree.h"

namespace engine {

/// Returns true if a row is a proposal, not the last committed token, a window cell or a probe.
bool is_proposal(RowTag::Kind kind);
/// Returns the distance of a proposal from the prefix; 1 is the next position. 0 if the row is no proposal.
int depth_of(const TokenTree& tree, int row);
/// Returns the value of a row in a recorded list; -1 if it was not recorded.
float value_at(const std::vector<float>& list, int row);

}  // namespace engine
