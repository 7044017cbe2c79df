// Adapts messages of the engine to the window.
#pragma once

#include <string>

namespace ui {

/// Returns the message with command line options replaced by the words of Setup: "try --device cpu" becomes "try cpu as the device in Setup".
std::string for_window(const std::string& message);

}  // namespace ui
