// The steady clock of a session.
#pragma once

#include "engine/event/event.h"

namespace engine {

/// Nanoseconds since the program started; never decreases.
Nanoseconds now_ns();

}  // namespace engine
