// A timeline as the events it was fed with, so that what is shown can be saved without keeping
// every event twice.
#pragma once

#include "engine/event/queue.h"
#include "engine/event/timeline/timeline.h"

namespace engine {

/// Hands all of it to `into`, oldest first; a timeline fed with these is the same again. Not there:
/// events that contradicted others, payload let go (told as PayloadDropped), an agreement that a
/// later one of its run replaced. Several pool changes of one step come as one.
void tell(const Timeline& timeline, EventSink& into);

}  // namespace engine
