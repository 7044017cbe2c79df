// Names the proposer of an emitted token in one word, for results and tables.
#pragma once

#include <string>
#include <string_view>

#include "engine/event/event.h"

namespace engine {

/// "none"    the step proposed nothing: the target chose alone
/// "bonus"   the step proposed something, and this is the target's own choice after the proposals
///           that were accepted, if any
/// otherwise an accepted proposal of
///   "draft"   a draft model
///   "head N"  draft head N, from 1
///   "pool"    the n-gram pool
///   "prompt"  prompt lookup
///   "guess"   a block or window that is refined step by step (jacobi, fastcot)
std::string drafted_by(std::string_view decoder, TokenStatus status, const RowTag& origin);

}  // namespace engine
