// Decides when a panel scrolls to a new item.
#pragma once

namespace ui {

/// Returns true if the current window has to scroll to the item `shown`: for three frames after `shown` has changed, because sizes are known one
/// frame late; after that the user can scroll freely.
/// @param shown  a number that identifies the item
bool is_new_in_view(int shown);

}  // namespace ui
