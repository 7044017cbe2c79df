// Rounds on two threads: the caller's is the target's, a second one drafts; where they work in turn
// (Rounds::at_once) the caller's does both. They meet in one place, the bookkeeping behind a lock;
// whoever holds a branch by its word is alone with it.
#pragma once

#include <functional>

#include "engine/seed/rounds.h"

namespace engine {

/// Runs all requests of `work` to their end.
/// @param rounds   no branch admitted; a sink of its events must take them from either thread
/// @param stop     asked before each verification; true ends the rounds where they stand. Or empty
/// @param between  called on this thread between two pieces of its work, and now and then while it
///                 waits for a draft. Or empty
/// @throws whatever the work or the sink of the rounds' events throws, on either thread, when both
///         have come to rest
void run_rounds(Rounds& rounds,
                RoundsWork& work,
                const std::function<bool()>& stop = {},
                const std::function<void()>& between = {});

}  // namespace engine
