#include "ui/shell/layout.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <imgui_internal.h>

#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

// Version of saved layouts. Increase it when the panels of a screen change.
constexpr int kLayoutVersion = 6;
// Height that the timelines of four lanes and the table beside them need.
constexpr float kBelowLanes = 380;
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

Dock dock_of(const Panel& panel, Screen screen) {
  return screen == Screen::Live       ? panel.live
         : screen == Screen::Compare  ? panel.compare
         : screen == Screen::Training ? panel.training
                                      : Dock::None;
}

ImGuiID split(ImGuiID& node, ImGuiDir side, float share) {
  ImGuiID rest = 0, part = 0;
  ImGui::DockBuilderSplitNode(node, side, share, &part, &rest);
  node = rest;
  return part;
}

using Nodes = std::map<Dock, ImGuiID>;

// Splits the screen Live.
Nodes live(ImGuiID centre) {
  ImGuiID left = split(centre, ImGuiDir_Left, 0.178f);
  ImGuiID right = split(centre, ImGuiDir_Right, 0.255f);
  const ImGuiID left_foot = split(left, ImGuiDir_Down, 0.22f);
  const ImGuiID right_foot = split(right, ImGuiDir_Down, 0.175f);
  const ImGuiID right_middle = split(right, ImGuiDir_Down, 0.37f);
  const ImGuiID top = split(centre, ImGuiDir_Up, 0.22f);
  const ImGuiID foot = split(centre, ImGuiDir_Down, 0.46f);
  return {{Dock::Left, left},
          {Dock::LeftFoot, left_foot},
          {Dock::Top, top},
          {Dock::Centre, centre},
          {Dock::Foot, foot},
          {Dock::Right, right},
          {Dock::RightMiddle, right_middle},
          {Dock::RightFoot, right_foot}};
}

// Splits the screen Compare. The lanes are the central node: they take the height that the timelines and the table below do not need, also when
// the window grows.
Nodes compare(ImGuiID lanes, float height) {
  ImGuiID left = split(lanes, ImGuiDir_Left, 0.178f);
  const ImGuiID left_foot = split(left, ImGuiDir_Down, 0.22f);
  const float below = std::clamp(px(kBelowLanes) / std::max(height, 1.0f), 0.25f, 0.5f);
  ImGuiID foot = split(lanes, ImGuiDir_Down, below);
  const ImGuiID foot_right = split(foot, ImGuiDir_Right, 0.30f);
  return {{Dock::Left, left},
          {Dock::LeftFoot, left_foot},
          {Dock::Centre, lanes},
          {Dock::Foot, foot},
          {Dock::FootRight, foot_right}};
}

// Splits the screen Training.
Nodes training(ImGuiID centre) {
  const ImGuiID left = split(centre, ImGuiDir_Left, 0.178f);
  const ImGuiID foot = split(centre, ImGuiDir_Down, 0.5f);
  const ImGuiID right = split(centre, ImGuiDir_Right, 0.27f);
  const ImGuiID right_middle = split(centre, ImGuiDir_Right, 0.45f);
  return {{Dock::Left, left},
          {Dock::Foot, foot},
          {Dock::Right, right},
          {Dock::RightMiddle, right_middle},
          {Dock::Centre, centre}};
}

std::vector<const char*> ids_of(Screen screen) {
  std::vector<const char*> ids;
  for (const Panel& panel : panels())
    if (dock_of(panel, screen) != Dock::None) ids.push_back(panel.id);
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
    case Screen::Welcome:
      break;
  }
  return "welcome";
}

Screen screen_named(const std::string& name) {
  for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Training, Screen::Lesson})
    if (name == screen_name(screen)) return screen;
  return Screen::Welcome;
}

std::span<const char* const> panels_of(Screen screen) {
  static const std::map<Screen, std::vector<const char*>> all{
      {Screen::Welcome, {}},
      {Screen::Live, ids_of(Screen::Live)},
      {Screen::Compare, ids_of(Screen::Compare)},
      {Screen::Training, ids_of(Screen::Training)},
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

bool lacks_layout(ImGuiID dockspace) {
  const ImGuiDockNode* node = ImGui::DockBuilderGetNode(dockspace);
  return !node || (!node->IsSplitNode() && node->Windows.empty());
}

void build_default_layout(Screen screen, ImGuiID dockspace, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(dockspace);
  ImGui::DockBuilderAddNode(dockspace, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(dockspace, size);
  const Nodes nodes = screen == Screen::Live       ? live(dockspace)
                      : screen == Screen::Compare  ? compare(dockspace, size.y)
                      : screen == Screen::Training ? training(dockspace)
                                                   : Nodes{};
  for (const Panel& panel : panels()) {
    const Dock dock = dock_of(panel, screen);
    if (dock == Dock::None) continue;
    ImGui::DockBuilderDockWindow(window_name(screen, panel.id, panel.title).c_str(),
                                 nodes.at(dock));
    if (panel.bare)
      ImGui::DockBuilderGetNode(nodes.at(dock))->LocalFlags |= ImGuiDockNodeFlags_NoTabBar;
  }
  ImGui::DockBuilderFinish(dockspace);
}

}  // namespace ui
