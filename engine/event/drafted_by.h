// Names in one word what proposed an emitted token, for results and tables.
#pragma once

#include <string>
#include <string_view>

#include "engine/event/event.h"

namespace engine {

/// "none"    the target's own token of a step without proposals
/// "bonus"   the target's own token after the accepted proposals, if any
/// Otherwise the token is an accepted proposal of
///   "draft"   a draft model
///   "head N"  draft head N, from 1
///   "pool"    the n-gram pool
///   "successors"  the table of successors (recycling)
///   "prompt"  prompt lookup
///   "guess"   a block or window that is refined in each step (jacobi, fastcot)
std::string drafted_by(std::string_view decoder, TokenStatus status, const RowTag& origin);

}  // namespace engine
