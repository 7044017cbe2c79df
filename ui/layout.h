// Screens, the panels each has, and where they dock at first.
#pragma once

#include <span>
#include <string>

#include <imgui.h>

namespace ui {

enum class Screen { Welcome, Live, Compare };

const char* screen_name(Screen screen);  // "live"
/// Panels of a screen by id.
std::span<const char* const> panels_of(Screen screen);
/// The Dear ImGui name of a panel's window on a screen: what is shown, then an identity of its own.
std::string window_name(Screen screen, const char* panel_id, const char* title);
/// Docks every panel of the screen at its default place in a space of `size` pixels.
void build_default_layout(Screen screen, ImGuiID dockspace, ImVec2 size);
/// Whether the dock space has no layout yet.
bool lacks_layout(ImGuiID dockspace);

}  // namespace ui
