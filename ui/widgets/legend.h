// Legends: samples of the marks that panels draw, with their meaning. Marks that several panels share are defined here; a panel's own
// marks are in its pair.
#pragma once

#include <span>

#include <imgui.h>

#include "ui/prepare/figure.h"
#include "ui/widgets/theme.h"

namespace ui {

/// An entry of a legend: a sample and its meaning. Without `draw` the sample is a token cell, described by the fields from `mean` on.
struct MarkNote {
  const char* words = "";  // the explanation; empty: meaning_of(mean)
  /// Draws the sample into a box of kSampleWidth x kSampleHeight.
  void (*draw)(ImDrawList* list, ImVec2 min, const MarkNote& note) = nullptr;
  Mean mean = Mean::Prefix;
  Mean origin = Mean::Prefix;  // colour of the cell's corner
  const char* text = "";
  const char* mark = nullptr;  // replaces the mark of `mean`
  bool diverged = false, lit = false, locked = false;
  Truth truth = Truth::Measured;  // for a sample that is a letter
};

/// Size of a sample in pixels at 100 %.
constexpr float kSampleWidth = 132, kSampleHeight = 23;

/// Returns an entry for a meaning, with the words of meaning_of().
constexpr MarkNote cell_note(Mean mean) {
  return {.mean = mean, .text = look(mean).name};
}

/// A cell that the pointer highlights.
inline constexpr MarkNote kLitNote{.words = "ring: under the pointer, in this panel or another",
                                   .mean = Mean::Plain,
                                   .text = "lit",
                                   .lit = true};

/// Returns the meanings, corners, signs and rings of token cells.
std::span<const MarkNote> cell_marks();
/// Returns the letters beside figures.
std::span<const MarkNote> letter_marks();

/// Draws samples with their meanings, one per line. Needs a Dear ImGui frame.
void draw_notes(std::span<const MarkNote> notes);
/// Draws a quiet sign "?" whose tooltip shows a help sentence, these marks, the letters, and a last sentence.
/// @param id    unique on the screen: "?###marks_text"
/// @param help  a sentence; empty: none
/// @param also  a further sentence; empty: none
void legend_button(const char* id,
                   const char* help,
                   std::span<const MarkNote> notes,
                   const char* also = "");
/// Draws a row of cells that explains meanings, as many as fit.
/// @param signs  true: also explain the corners of accepted cells and the letters beside figures
void legend(std::span<const Mean> means, bool signs);

}  // namespace ui
