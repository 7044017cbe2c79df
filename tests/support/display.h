// A display for tests that open a window.
#pragma once

namespace display {

/// Whether a window can be opened: $DISPLAY is set, or an Xvfb could be started for this process
/// (it ends with it).
bool ready();

}  // namespace display
