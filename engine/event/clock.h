// The session's one steady clock.
#pragma once

#include "engine/event/event.h"

namespace engine {

/// Nanoseconds since the program began, never going back.
Nanoseconds now_ns();

}  // namespace engine
