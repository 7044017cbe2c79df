// When a panel scrolls by itself.
#pragma once

namespace ui {

/// Whether what the current window brings into view is another than it was: true for three frames,
/// since sizes are known a frame later. In between one may scroll.
/// @param shown  a number of its own for each thing to be brought
bool is_new_in_view(int shown);

}  // namespace ui
