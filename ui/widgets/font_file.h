// Checks a font file that the user chooses, before Dear ImGui reads it: its reader does not check the tables.
#pragma once

#include <string>

namespace ui {

/// Returns true if the name of a file ends with .ttf or .otf.
bool is_font_name(const std::string& path);
/// Returns why the program cannot use a font file, as a sentence without its full stop that names the file; empty if it can, or for an empty path.
std::string why_not_font(const std::string& path);

}  // namespace ui
