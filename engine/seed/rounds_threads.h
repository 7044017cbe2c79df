// Runs rounds on threads: the caller's thread runs the target, and Rounds::n_drafters() further ones
// draft, each for another branch. If the models work in turn (Rounds::at_once() is false), the
// caller's thread does both. A lock guards the bookkeeping; a branch is used only by the thread to
// which the bookkeeping has given it.
//   processor time  the operating system divides it among the target's pool of threads and the
//                   drafting threads, which only wait on a condition variable between two drafts.
//                   Each drafter brings the threads of its operations (RoundsWork::about_to_draft);
//                   it never uses the target's pool while the target may work
#pragma once

#include <functional>

#include "engine/seed/rounds.h"

namespace engine {

/// Runs all requests of `work` to their end.
/// @param rounds   has no taken place; its event sink must accept events from all threads
/// @param stop     called before each verification; true ends the rounds there. May be empty
/// @param between  called on this thread between its stages, and every 100 ms while it waits for a
///                 draft. May be empty
/// @throws  the first exception of the work or of the rounds' event sink, from any thread, after all
///          threads have stopped
/// @throws Error(Resources)  if a drafting thread cannot be started
void run_rounds(Rounds& rounds,
                RoundsWork& work,
                const std::function<bool()>& stop = {},
                const std::function<void()>& between = {});

}  // namespace engine
