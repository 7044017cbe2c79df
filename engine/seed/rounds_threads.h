// Runs rounds on two threads: the caller's thread runs the target, a second one drafts. If the
// models work in turn (Rounds::at_once() is false), the caller's thread does both. A lock guards
// the bookkeeping; a branch is used only by the thread to which the bookkeeping has given it.
#pragma once

#include <functional>

#include "engine/seed/rounds.h"

namespace engine {

/// Runs all requests of `work` to their end.
/// @param rounds   has no taken place; its event sink must accept events from both threads
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
