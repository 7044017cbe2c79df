// Makes line feeds visible.
#pragma once

#include <string>

namespace ui {

/// Replaces every line feed, and the symbol U+240A, by a pilcrow, which the monospaced font has.
/// @return whether there was any
bool show_line_feeds(std::string& text);

}  // namespace ui
