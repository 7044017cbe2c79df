// The two font families of the window, embedded in the program: Roboto for the interface, Inconsolata for the text of models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

struct ImFont;

namespace ui {

/// The fonts of the current context.
struct Fonts {
  ImFont* regular = nullptr;
  ImFont* bold = nullptr;
  ImFont* mono = nullptr;
};

// Heights in pixels at 100 % (Dear ImGui counts from ascent to descent).
constexpr float kTextSize = 15.5f, kSmallSize = 13.5f, kMonoSize = 15.5f, kBigSize = 29,
                kMarkSize = 10.5f, kTruthSize = 11;

/// Adds the fonts to the current context's atlas; the regular one is the default.
/// @param text_font  path of a .ttf or .otf file that replaces Roboto; Roboto and the system's fonts have the characters that it lacks. Empty, or
///                   a file that why_not_font() refuses: Roboto
void load_fonts(const std::string& text_font = "");
/// Returns the fonts that the window uses for characters that its own fonts lack: for each script, the first of the fonts wanted that is below one of
/// these folders and that why_not_system_font() does not refuse.
std::vector<std::string> system_fonts(const std::vector<std::filesystem::path>& folders);
/// Returns the path of the font that replaces Roboto; empty: none does.
const std::string& loaded_text_font();
/// Returns the loaded fonts.
const Fonts& fonts();

}  // namespace ui
