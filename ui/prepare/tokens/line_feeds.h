// Line feeds as a sign that the writing font has.
#pragma once

#include <string>

namespace ui {

/// Puts a pilcrow in the place of every line feed, and of the symbol for one.
/// @return whether there was any
bool show_line_feeds(std::string& text);

}  // namespace ui
