// The screens, their panels, and the default layout of each.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <imgui.h>

#include "ui/shell/panel.h"

namespace ui {

/// A screen of the window.
enum class Screen { Welcome, Live, Compare, Training, Lesson, Lab };

/// A panel that a preset docks in another part than the default.
struct PresetPlace {
  Screen screen;
  std::string_view panel;  // its id; an unknown one is ignored
  Dock dock;
};

/// The size of a part, as a share of the place from which it is split off.
struct PresetShare {
  Screen screen;
  Dock part;
  float share;  // 0 to 1; a minimum size of the part may make it larger
};

/// An arrangement of the panels. Panels and parts that it does not name are as in the default layout.
struct LayoutPreset {
  const char* word = "";   // as in settings.txt: "watching"
  const char* label = "";  // as shown: "Watching"
  const char* help = "";   // a sentence
  std::span<const PresetPlace> places = {};
  std::span<const PresetShare> shares = {};
};

/// Returns the screen with this name; Welcome if no screen has it.
Screen screen_named(const std::string& name);

/// Returns the name of a screen in settings and on the command line: "live".
const char* screen_name(Screen screen);
/// Returns the ids of a screen's panels.
std::span<const char* const> panels_of(Screen screen);
/// Returns the Dear ImGui name of a panel's window: the title shown, then an id that is unique to screen and panel.
std::string window_name(Screen screen, const char* panel_id, const char* title);
/// The smallest size of the window at 100 %, px. In a smaller one the scale is reduced.
inline constexpr int kLeastWidth = 640, kLeastHeight = 400;

/// Padding of the tab bar and of a tab, px at 100 %; together they align the title with the panel's text.
inline constexpr float kHeadPadding = 6;

/// The version of saved layouts. Increase it when the panels of a screen change.
inline constexpr int kLayoutVersion = 8;

/// The room for panels in a window.
enum class Room {
  Wide,    ///< every part of the screen has its place
  Medium,  ///< Setup at the left; the other panels share one or two places as tabs, the text of the answer has its own
  Small,   ///< all panels are tabs of one place
};
/// Returns the room in a dock space of `size` pixels at the user's scale.
Room room_of(ImVec2 size);
/// Returns true if the screen has the preset's layout for another room, so that it must be built again for this one. A layout that the user
/// changed by moving panels is kept at every size.
bool is_preset_of_other_room(Screen screen, const LayoutPreset& preset, Room room);
/// Docks every panel of the screen at its place of a preset in a dock space of `size` pixels. In a small window panels share places; the text of
/// the answer has at least four lines.
void build_layout(Screen screen, const LayoutPreset& preset, ImGuiID dockspace, ImVec2 size);
/// Checks the version of a saved layout. A layout of another version would leave new panels floating, so the file is renamed to *.old and
/// the default layout is used. Call between CreateContext and the first frame.
/// @return whether a file was renamed
bool keep_layout_in(const std::filesystem::path& file);
/// Loads a saved layout, if there is one. Call after keep_layout_in().
void load_layout_of(const std::filesystem::path& file);
/// Saves layout_text() through a temporary file and a rename. If that fails, Dear ImGui asks again after the next change.
/// @return empty, or why the file could not be written
std::string save_layout(const std::filesystem::path& file, const std::string& text);
/// Returns the places and sizes of all panels as text, as layout.ini has them.
std::string layout_text();
/// Returns true if two such texts differ at most in the tabs that are in front.
bool is_same_layout(const std::string& a, const std::string& b);
/// Moves the panels as such a text says. Call before a frame's first window.
void load_layout(const std::string& text);
/// Returns true if the dock space has no panels yet.
bool lacks_layout(ImGuiID dockspace);

}  // namespace ui
