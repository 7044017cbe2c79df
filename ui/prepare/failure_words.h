// What a failure says, as the window says it.
#pragma once

#include <string>

namespace ui {

/// A message of the engine's with what it suggests of the command line ("try --device cpu") named
/// as Setup has it ("try cpu as the device in Setup"). Other text stays as it is.
std::string in_window(const std::string& message);

}  // namespace ui
