// Sheets: windows above the panels, for dialogs. Bars with one sentence.
#pragma once

#include <string>

#include <imgui.h>

namespace ui {

/// Begins a sheet below the top bar, in the middle; ImGui::End() ends it.
/// @param size   of the sheet, px; less in a small window
/// @param focus  gives it the keyboard
bool begin_sheet(const char* name, ImVec2 size, bool focus);
/// Draws the title of a sheet.
void heading(const char* text);
/// Returns the height of a text that wraps at the window's edge, with the space below it.
float height_of(const std::string& text);

/// Begins a bar across the window that ends at `bottom`, with a sentence in large type, or in smaller type if it is too long;
/// ImGui::End() ends the bar.
/// @param room  at the right, for what follows the sentence, px
/// @return where the bar begins
float begin_sentence_bar(const char* name, float bottom, const std::string& sentence, float room);

}  // namespace ui
