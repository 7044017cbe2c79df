// Converts a timeline back to events, so that a session can be saved without storing its events
// twice.
#pragma once

#include "engine/event/queue.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

/// Pushes the events of a timeline into `into`, oldest first; applying them gives an equal
/// timeline. The result lacks ignored events, dropped payload (PayloadDropped reports it) and
/// agreements that a later one replaced. Several pool changes of one step are joined.
void replay_events(const Timeline& timeline, EventSink& into);

}  // namespace engine
