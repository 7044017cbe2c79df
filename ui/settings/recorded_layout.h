// The places of the panels as they are saved with a recording. They are a part of Dear ImGui's text and are checked before they are loaded,
// because notes may come from others: Dear ImGui assumes that its text describes complete trees.
//   version=8
//   [Window][live.text]
//   Collapsed=0
//   DockId=0x00000004,0
//   [Docking][Data]
//   DockSpace     ID=0x6D581B32 Window=0xE24CC6B5 Pos=8,56 Size=1584,908 Split=X
//     DockNode    ID=0x00000001 Parent=0x6D581B32 SizeRef=282,908 Selected=0x1A2B3C4D
#pragma once

#include <string>

namespace ui {

/// Returns the panels and their places in a text of layout_text(), without other windows, tables and what follows from the places.
std::string recorded_layout(const std::string& layout);
/// Checks such a text: its version, each line, that the places of a screen are a complete tree and that each of its panels has one.
/// @return empty, or why it cannot be loaded
std::string why_not_layout(const std::string& recorded);

}  // namespace ui
