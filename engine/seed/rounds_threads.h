// Runs rounds on two threads: the caller's thread runs the target, a second one drafts. If the
// models work in turn (Rounds::at_once() is false), the caller's thread does both. A lock guards
// the bookkeeping; the thread that it gives a branch to uses this branch alone.
#pragma once

#include <functional>

#include "engine/seed/rounds.h"

namespace engine {

/// Runs all requests of `work` to their end.
/// @param rounds   without branches; its event sink must accept events from both threads
/// @param stop     called before each verification; true ends the rounds there. May be empty
/// @param between  called on this thread between its stages, and every 100 ms while it waits for a
///                 draft. May be empty
/// @throws  an exception of the work or of the rounds' event sink, from either thread, after both
///          threads have stopped
void run_rounds(Rounds& rounds,
                RoundsWork& work,
                const std::function<bool()>& stop = {},
                const std::function<void()>& between = {});

}  // namespace engine
