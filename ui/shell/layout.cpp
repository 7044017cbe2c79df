#include "ui/shell/layout.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <imgui_internal.h>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Heights at 100 %, px: the timelines of four lanes with the table beside them; lanes with four lines of text; a text panel with four lines.
constexpr float kBelowLanes = 380, kLanes = 372, kText = 186;
// The least height of Runs at 100 %, px: its search, the table's head and two rows.
constexpr float kRuns = 150;
// Widths at 100 %, px: the column of Setup, in which no field is cut; the table of Difference.
constexpr float kSetup = 252, kTable = 410;
constexpr const char* kVersionHead = "[Decoscope][Layout]";

int version_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (line != kVersionHead || !std::getline(in, line)) continue;
    int version = 0;
    if (std::sscanf(line.c_str(), "version=%d", &version) == 1) return version;
  }
  return 0;
}

void write_version(ImGuiContext*, ImGuiSettingsHandler*, ImGuiTextBuffer* out) {
  out->appendf("%s\nversion=%d\n\n", kVersionHead, kLayoutVersion);
}

Dock dock_of(const Panel& panel, Screen screen, const LayoutPreset& preset) {
  for (const PresetPlace& place : preset.places)
    if (place.screen == screen && place.panel == panel.id) return place.dock;
  return screen == Screen::Live       ? panel.live
         : screen == Screen::Compare  ? panel.compare
         : screen == Screen::Training ? panel.training
         : screen == Screen::Lab      ? panel.lab
                                      : Dock::None;
}

ImGuiID split(ImGuiID& node, ImGuiDir side, float share) {
  ImGuiID rest = 0, part = 0;
  ImGui::DockBuilderSplitNode(node, side, share, &part, &rest);
  node = rest;
  return part;
}

using Nodes = std::map<Dock, ImGuiID>;

// Returns the part of the screen that holds the panels of `dock`: a small window has fewer parts, and their panels are tabs.
Dock part_of(Dock dock, Screen screen, Room room) {
  if (room == Room::Wide) return dock;
  const Dock main = screen == Screen::Live ? Dock::Top : Dock::Centre;
  const bool has_tabs = screen == Screen::Compare || screen == Screen::Lab;
  if (room == Room::Small || has_tabs || dock == main) return main;
  return dock == Dock::Left || dock == Dock::LeftFoot ? Dock::Left : Dock::Centre;
}

float share_of(float pixels, float whole) {
  return px(pixels) / std::max(whole, 1.0f);
}

float left_share(float width) {
  return std::max(0.178f, share_of(kSetup, width));
}

// Splits off the parts of a wide screen that have panels in a preset, with the preset's shares.
class Parts {
 public:
  Parts(Screen screen, const LayoutPreset& preset) : screen_(screen), preset_(preset) {}

  /// Returns the share of a part; `usual` if the preset does not name it.
  float share(Dock part, float usual) const {
    for (const PresetShare& one : preset_.shares)
      if (one.screen == screen_ && one.part == part) return one.share;
    return usual;
  }
  /// Splits a part off `node`, which keeps the rest.
  void put(Dock part, ImGuiID& node, ImGuiDir side, float share) {
    const bool has_panels = std::ranges::any_of(
        panels(), [&](const Panel& panel) { return dock_of(panel, screen_, preset_) == part; });
    if (has_panels) nodes[part] = split(node, side, share);
  }

  Nodes nodes;

 private:
  Screen screen_;
  const LayoutPreset& preset_;  // outlives the object
};

// Returns the share of Runs in a column of this height.
float runs_share(const Parts& parts, float height) {
  return std::max(parts.share(Dock::LeftFoot, 0.22f), share_of(kRuns, height));
}

// Splits the screen Live.
Nodes live(ImGuiID centre, ImVec2 size, Room room, const LayoutPreset& preset) {
  if (room == Room::Small) return {{Dock::Top, centre}};
  if (room == Room::Medium) {
    const ImGuiID left = split(centre, ImGuiDir_Left, left_share(size.x));
    const ImGuiID top = split(centre, ImGuiDir_Up, share_of(kText, size.y));
    return {{Dock::Left, left}, {Dock::Top, top}, {Dock::Centre, centre}};
  }
  Parts parts(Screen::Live, preset);
  Nodes& nodes = parts.nodes;
  parts.put(Dock::Left, centre, ImGuiDir_Left, left_share(size.x));
  parts.put(Dock::Right, centre, ImGuiDir_Right, parts.share(Dock::Right, 0.255f));
  parts.put(Dock::LeftFoot, nodes[Dock::Left], ImGuiDir_Down, runs_share(parts, size.y));
  ImGuiID& right = nodes[Dock::Right];
  parts.put(Dock::RightFoot, right, ImGuiDir_Down, parts.share(Dock::RightFoot, 0.175f));
  parts.put(Dock::RightMiddle, right, ImGuiDir_Down, parts.share(Dock::RightMiddle, 0.37f));
  const float top = std::max(parts.share(Dock::Top, 0.22f), share_of(kText, size.y));
  parts.put(Dock::Top, centre, ImGuiDir_Up, top);
  parts.put(Dock::Foot, centre, ImGuiDir_Down, parts.share(Dock::Foot, 0.46f));
  nodes[Dock::Centre] = centre;
  return nodes;
}

// Splits the screen Compare. The lanes are the central node: they take the height that the timelines and the table below do not need, also when
// the window grows. In a low window the lanes keep the height of four lines of text, and the timelines get the rest.
Nodes compare(ImGuiID lanes, ImVec2 size, Room room, const LayoutPreset& preset) {
  if (room != Room::Wide) return {{Dock::Centre, lanes}};
  Parts parts(Screen::Compare, preset);
  Nodes& nodes = parts.nodes;
  parts.put(Dock::Left, lanes, ImGuiDir_Left, left_share(size.x));
  parts.put(Dock::LeftFoot, nodes[Dock::Left], ImGuiDir_Down, runs_share(parts, size.y));
  const float below =
      parts.share(Dock::Foot, std::clamp(share_of(kBelowLanes, size.y), 0.25f, 0.5f));
  parts.put(Dock::Foot, lanes, ImGuiDir_Down, std::min(below, 1 - share_of(kLanes, size.y)));
  // The table has room for the figures of five lanes.
  const float table = share_of(kTable, size.x * (1 - left_share(size.x)));
  parts.put(Dock::FootRight, nodes[Dock::Foot], ImGuiDir_Right,
            parts.share(Dock::FootRight, std::clamp(table, 0.30f, 0.42f)));
  nodes[Dock::Centre] = lanes;
  return nodes;
}

// Splits the screen Training.
Nodes training(ImGuiID centre, ImVec2 size, Room room) {
  if (room == Room::Small) return {{Dock::Centre, centre}};
  const ImGuiID left = split(centre, ImGuiDir_Left, left_share(size.x));
  if (room == Room::Medium) return {{Dock::Left, left}, {Dock::Centre, centre}};
  const ImGuiID foot = split(centre, ImGuiDir_Down, 0.5f);
  const ImGuiID right = split(centre, ImGuiDir_Right, 0.27f);
  const ImGuiID right_middle = split(centre, ImGuiDir_Right, 0.45f);
  return {{Dock::Left, left},
          {Dock::Foot, foot},
          {Dock::Right, right},
          {Dock::RightMiddle, right_middle},
          {Dock::Centre, centre}};
}

// Splits the screen Lab.
Nodes laboratory(ImGuiID centre, Room room) {
  if (room != Room::Wide) return {{Dock::Centre, centre}};
  const ImGuiID left = split(centre, ImGuiDir_Left, 0.34f);
  const ImGuiID foot = split(centre, ImGuiDir_Down, 0.36f);
  return {{Dock::Left, left}, {Dock::Centre, centre}, {Dock::Foot, foot}};
}

// Returns the panels of a screen in the order of their tabs: first those that belong to a part, then those that a small window adds to it.
std::vector<const Panel*> in_tab_order(Screen screen, Room room, const LayoutPreset& preset) {
  std::vector<const Panel*> order;
  for (const Panel& panel : panels())
    if (dock_of(panel, screen, preset) != Dock::None) order.push_back(&panel);
  std::ranges::stable_partition(order, [&](const Panel* panel) {
    const Dock dock = dock_of(*panel, screen, preset);
    return part_of(dock, screen, room) == dock;
  });
  return order;
}

// Returns the node of a panel's window, also before the window's first frame; 0: none is known.
ImGuiID node_of(Screen screen, const Panel& panel) {
  const std::string name = window_name(screen, panel.id, panel.title);
  if (const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str())) return window->DockId;
  const ImGuiWindowSettings* settings = ImGui::FindWindowSettingsByID(ImHashStr(name.c_str()));
  return settings ? settings->DockId : 0;
}

void set_tab_order(const std::string& name, short order) {
  if (ImGuiWindow* window = ImGui::FindWindowByName(name.c_str())) window->DockOrder = order;
  if (ImGuiWindowSettings* settings = ImGui::FindWindowSettingsByID(ImHashStr(name.c_str())))
    settings->DockOrder = order;
}

ImGuiID tab_of(const std::string& window) {
  return ImHashStr("#TAB", 0, ImHashStr(window.c_str()));
}

// Returns true if the panel's window has the keyboard focus; its tab then stays in front.
bool has_focus(const std::string& window) {
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  return focused && focused->RootWindow == ImGui::FindWindowByName(window.c_str());
}

// Returns true if the panels share parts as the preset for `room` has it.
bool has_parts_of(Screen screen, Room room, const LayoutPreset& preset) {
  const std::vector<const Panel*> all = in_tab_order(screen, room, preset);
  const auto part = [&](const Panel* panel) {
    return part_of(dock_of(*panel, screen, preset), screen, room);
  };
  for (const Panel* one : all)
    for (const Panel* other : all)
      if ((node_of(screen, *one) == node_of(screen, *other)) != (part(one) == part(other)))
        return false;
  return true;
}

std::vector<const char*> ids_of(Screen screen) {
  std::vector<const char*> ids;
  for (const Panel& panel : panels())
    if (dock_of(panel, screen, LayoutPreset{}) != Dock::None) ids.push_back(panel.id);
  return ids;
}

}  // namespace

const char* screen_name(Screen screen) {
  switch (screen) {
    case Screen::Live:
      return "live";
    case Screen::Compare:
      return "compare";
    case Screen::Training:
      return "training";
    case Screen::Lesson:
      return "lesson";
    case Screen::Lab:
      return "lab";
    case Screen::Welcome:
      break;
  }
  return "welcome";
}

Screen screen_named(const std::string& name) {
  for (const Screen screen :
       {Screen::Live, Screen::Compare, Screen::Training, Screen::Lesson, Screen::Lab})
    if (name == screen_name(screen)) return screen;
  return Screen::Welcome;
}

std::span<const char* const> panels_of(Screen screen) {
  static const std::map<Screen, std::vector<const char*>> all{
      {Screen::Welcome, {}},
      {Screen::Live, ids_of(Screen::Live)},
      {Screen::Compare, ids_of(Screen::Compare)},
      {Screen::Training, ids_of(Screen::Training)},
      {Screen::Lab, ids_of(Screen::Lab)},
      {Screen::Lesson, {}}};  // draws the panels that its cards name, without docking
  return all.at(screen);
}

std::string window_name(Screen screen, const char* panel_id, const char* title) {
  return std::string(title) + "###" + screen_name(screen) + "." + panel_id;
}

bool keep_layout_in(const std::filesystem::path& file) {
  ImGuiSettingsHandler handler;
  handler.TypeName = "Decoscope";
  handler.TypeHash = ImHashStr("Decoscope");
  // version_of() reads the version before Dear ImGui loads the file.
  handler.ReadOpenFn = [](ImGuiContext*, ImGuiSettingsHandler*, const char*) -> void* {
    return nullptr;
  };
  handler.ReadLineFn = [](ImGuiContext*, ImGuiSettingsHandler*, void*, const char*) {};
  handler.WriteAllFn = write_version;
  ImGui::AddSettingsHandler(&handler);
  std::error_code error;
  if (!std::filesystem::exists(file, error) || version_of(file) == kLayoutVersion) return false;
  std::filesystem::rename(file, file.string() + ".old", error);
  if (error) std::filesystem::remove(file, error);
  return true;
}

void load_layout_of(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::exists(file, error)) ImGui::LoadIniSettingsFromDisk(file.string().c_str());
}

std::string save_layout(const std::filesystem::path& file, const std::string& text) {
  ImGui::GetIO().WantSaveIniSettings = false;
  try {
    std::error_code ignored;  // a failure is reported when the file is created
    std::filesystem::create_directories(file.parent_path(), ignored);
    engine::write_whole_file(file.string(), text);
    return "";
  } catch (const engine::Error& refused) {
    return std::string("the layout of the panels: ") + refused.what();
  }
}

std::string layout_text() {
  // Saving clears the time until the next write of layout.ini.
  ImGuiContext& gui = *ImGui::GetCurrentContext();
  const float until_saved = gui.SettingsDirtyTimer;
  std::string text = ImGui::SaveIniSettingsToMemory();
  gui.SettingsDirtyTimer = until_saved;
  return text;
}

bool is_same_layout(const std::string& a, const std::string& b) {
  const auto without_front_tabs = [](const std::string& text) {
    static const std::regex front(" Selected=0x[0-9A-F]+");
    return std::regex_replace(text, front, "");
  };
  return without_front_tabs(a) == without_front_tabs(b);
}

void load_layout(const std::string& text) {
  ImGui::ClearIniSettings();
  ImGui::LoadIniSettingsFromMemory(text.data(), text.size());
  ImGui::MarkIniSettingsDirty();
}

bool lacks_layout(ImGuiID dockspace) {
  const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dockspace);
  return !node || (!node->IsSplitNode() && node->Windows.empty());
}

Room room_of(ImVec2 size) {
  if (size.x >= px(1060) && size.y >= px(560)) return Room::Wide;
  return size.x >= px(760) && size.y >= px(360) ? Room::Medium : Room::Small;
}

bool is_preset_of_other_room(Screen screen, const LayoutPreset& preset, Room room) {
  if (has_parts_of(screen, room, preset)) return false;
  return std::ranges::any_of(std::array{Room::Wide, Room::Medium, Room::Small},
                             [&](Room other) { return has_parts_of(screen, other, preset); });
}

void build_layout(Screen screen, const LayoutPreset& preset, ImGuiID dockspace, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(dockspace);
  ImGui::DockBuilderAddNode(dockspace, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(dockspace, size);
  const Room room = room_of(size);
  const Nodes nodes = screen == Screen::Live       ? live(dockspace, size, room, preset)
                      : screen == Screen::Compare  ? compare(dockspace, size, room, preset)
                      : screen == Screen::Training ? training(dockspace, size, room)
                      : screen == Screen::Lab      ? laboratory(dockspace, room)
                                                   : Nodes{};
  std::map<ImGuiID, short> n_tabs;
  for (const Panel* panel : in_tab_order(screen, room, preset)) {
    const ImGuiID node = nodes.at(part_of(dock_of(*panel, screen, preset), screen, room));
    const std::string name = window_name(screen, panel->id, panel->title);
    ImGui::DockBuilderDockWindow(name.c_str(), node);
    ImGuiDockNode* part = ImGui::DockBuilderGetNode(node);
    if (n_tabs[node] == 0 || has_focus(name)) part->SelectedTabId = tab_of(name);
    set_tab_order(name, n_tabs[node]++);
    if (panel->bare && room == Room::Wide) part->LocalFlags |= ImGuiDockNodeFlags_NoTabBar;
  }
  ImGui::DockBuilderFinish(dockspace);
}

}  // namespace ui
