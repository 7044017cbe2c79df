// The two font families of the window, embedded in the program: Roboto for the interface, Inconsolata for the text of models.
#pragma once

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
void load_fonts();
/// Returns the loaded fonts.
const Fonts& fonts();

}  // namespace ui
