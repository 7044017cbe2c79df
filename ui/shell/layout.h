// Screens, the panels each has, and where they dock at first.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include <imgui.h>

namespace ui {

enum class Screen { Welcome, Live, Compare, Training };

/// The screen of that name; Welcome where there is none.
Screen screen_named(const std::string& name);

const char* screen_name(Screen screen);  // "live"
/// Panels of a screen by id.
std::span<const char* const> panels_of(Screen screen);
/// The Dear ImGui name of a panel's window on a screen: what is shown, then an identity of its own.
std::string window_name(Screen screen, const char* panel_id, const char* title);
/// Docks every panel of the screen at its default place in a space of `size` pixels.
void build_default_layout(Screen screen, ImGuiID dockspace, ImVec2 size);
/// A saved layout says which version of the panels it arranges; one of another version would leave
/// new panels floating, so it is set aside (renamed to *.old) and the default takes its place.
/// Call between CreateContext and the first frame.
/// @return whether a layout was set aside
bool keep_layout_in(const std::filesystem::path& file);
/// Whether the dock space has no layout yet.
bool lacks_layout(ImGuiID dockspace);

}  // namespace ui
