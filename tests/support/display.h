// A display for tests that open a window.
#pragma once

namespace display {

/// Makes a display available: uses $DISPLAY or starts Xvfb, which ends with this process.
/// @return false if there is no display
bool ready();

}  // namespace display
