// Checks font files before Dear ImGui reads them, because its reader does not check the tables: the font that the user chooses, and the system's fonts.
#pragma once

#include <string>

namespace ui {

/// Returns true if the name of a file ends with .ttf or .otf.
bool is_font_name(const std::string& path);
/// Returns why the program cannot use a font file, as a sentence without its full stop that names the file; empty if it can, or for an empty path.
std::string why_not_font(const std::string& path);
/// The same for a font of the system, which may be a collection (.ttc): the reader uses its first font.
std::string why_not_system_font(const std::string& path);

}  // namespace ui
