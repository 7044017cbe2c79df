// Sheets: windows above the panels, for dialogs.
#pragma once

#include <imgui.h>

namespace ui {

/// Begins a sheet below the top bar, in the middle; ImGui::End() ends it.
/// @param size   of the sheet, px; less in a small window
/// @param focus  gives it the keyboard
bool begin_sheet(const char* name, ImVec2 size, bool focus);
/// Draws the title of a sheet.
void heading(const char* text);

}  // namespace ui
