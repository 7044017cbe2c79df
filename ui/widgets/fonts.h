// The two families of the window, carried inside the program: Roboto for the interface, Inconsolata
// for text that models write.
#pragma once

struct ImFont;

namespace ui {

struct Fonts {
  ImFont* regular = nullptr;
  ImFont* bold = nullptr;
  ImFont* mono = nullptr;
};

// Heights in pixels at 100 % (Dear ImGui counts from ascent to descent).
constexpr float kTextSize = 15.5f, kSmallSize = 13.5f, kMonoSize = 15.5f, kBigSize = 29,
                kMarkSize = 10.5f, kTruthSize = 11;

/// Adds them to the current context's atlas; the first is the default.
void load_fonts();
const Fonts& fonts();

}  // namespace ui
