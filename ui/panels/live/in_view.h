// Decides when a panel scrolls by itself.
#pragma once

namespace ui {

/// Returns true if the current window has to scroll to a thing. True for three frames after `shown` has changed, because sizes are known one
/// frame late; after that the user can scroll freely.
/// @param shown  a number that identifies the thing
bool is_new_in_view(int shown);

}  // namespace ui
