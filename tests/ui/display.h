// A display for tests that open a window.
#pragma once

namespace display {

/// Whether a window can be opened: $DISPLAY is set, or Xvfb could be started. Xvfb ends with this process.
bool ready();

}  // namespace display
