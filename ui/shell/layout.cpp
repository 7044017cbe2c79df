#include "ui/shell/layout.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include <imgui_internal.h>

#include "ui/widgets/draw.h"
#include "ui/shell/panel.h"

namespace ui {
namespace {

// Grows when a screen's panels change.
constexpr int kLayoutVersion = 6;
// Of the time lines of four lanes, and of the table beside them.
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

void dock(Screen screen, const char* id, ImGuiID node) {
  const Panel* panel = panel_named(id);
  ImGui::DockBuilderDockWindow(window_name(screen, id, panel->title).c_str(), node);
}

ImGuiID split(ImGuiID& node, ImGuiDir side, float share) {
  ImGuiID rest = 0, part = 0;
  ImGui::DockBuilderSplitNode(node, side, share, &part, &rest);
  node = rest;
  return part;
}

void live(ImGuiID centre) {
  ImGuiID left = split(centre, ImGuiDir_Left, 0.178f);
  ImGuiID right = split(centre, ImGuiDir_Right, 0.255f);
  const ImGuiID runs = split(left, ImGuiDir_Down, 0.22f);
  const ImGuiID machine = split(right, ImGuiDir_Down, 0.175f);
  const ImGuiID inspector = split(right, ImGuiDir_Down, 0.37f);
  const ImGuiID text = split(centre, ImGuiDir_Up, 0.22f);
  const ImGuiID timeline = split(centre, ImGuiDir_Down, 0.46f);
  dock(Screen::Live, "setup", left);
  dock(Screen::Live, "runs", runs);
  dock(Screen::Live, "text", text);
  dock(Screen::Live, "trajectory", centre);
  dock(Screen::Live, "pool", centre);
  dock(Screen::Live, "tree", centre);
  dock(Screen::Live, "mask", centre);
  dock(Screen::Live, "distributions", centre);
  dock(Screen::Live, "agreement", centre);
  dock(Screen::Live, "thoughts", centre);
  dock(Screen::Live, "gantt", timeline);
  dock(Screen::Live, "schedule", timeline);
  dock(Screen::Live, "log", timeline);
  dock(Screen::Live, "numbers", right);
  dock(Screen::Live, "inspector", inspector);
  dock(Screen::Live, "machine", machine);
}

// The lanes take what height the time lines and the table below them do not need, now and when the
// window grows: theirs is the central node.
void compare(ImGuiID lanes, float height) {
  ImGuiID left = split(lanes, ImGuiDir_Left, 0.178f);
  const ImGuiID runs = split(left, ImGuiDir_Down, 0.22f);
  const float below = std::clamp(px(kBelowLanes) / std::max(height, 1.0f), 0.25f, 0.5f);
  ImGuiID time_lines = split(lanes, ImGuiDir_Down, below);
  const ImGuiID difference = split(time_lines, ImGuiDir_Right, 0.30f);
  dock(Screen::Compare, "setup", left);
  dock(Screen::Compare, "runs", runs);
  dock(Screen::Compare, "lanes", lanes);
  dock(Screen::Compare, "gantt", time_lines);
  dock(Screen::Compare, "log", time_lines);
  dock(Screen::Compare, "difference", difference);
  dock(Screen::Compare, "inspector", difference);
  ImGui::DockBuilderGetNode(lanes)->LocalFlags |= ImGuiDockNodeFlags_NoTabBar;
}

void training(ImGuiID loss) {
  const ImGuiID facts = split(loss, ImGuiDir_Left, 0.178f);
  const ImGuiID trajectory = split(loss, ImGuiDir_Down, 0.5f);
  const ImGuiID pace = split(loss, ImGuiDir_Right, 0.27f);
  const ImGuiID probes = split(loss, ImGuiDir_Right, 0.45f);
  dock(Screen::Training, "training", facts);
  dock(Screen::Training, "loss", loss);
  dock(Screen::Training, "probes", probes);
  dock(Screen::Training, "pace", pace);
  dock(Screen::Training, "probe_trajectory", trajectory);
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
    case Screen::Welcome:
      break;
  }
  return "welcome";
}

Screen screen_named(const std::string& name) {
  for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Training})
    if (name == screen_name(screen)) return screen;
  return Screen::Welcome;
}

std::span<const char* const> panels_of(Screen screen) {
  static constexpr std::array<const char*, 16> kLive{
      "setup", "runs",          "text",      "trajectory", "pool",  "tree",
      "mask",  "distributions", "agreement", "thoughts",   "gantt", "schedule",
      "log",   "numbers",       "inspector", "machine"};
  static constexpr std::array<const char*, 7> kCompare{"setup", "runs",       "lanes",    "gantt",
                                                       "log",   "difference", "inspector"};
  static constexpr std::array<const char*, 5> kTraining{"training", "loss", "probes", "pace",
                                                        "probe_trajectory"};
  if (screen == Screen::Live) return kLive;
  if (screen == Screen::Compare) return kCompare;
  if (screen == Screen::Training) return kTraining;
  return {};
}

std::string window_name(Screen screen, const char* panel_id, const char* title) {
  return std::string(title) + "###" + screen_name(screen) + "." + panel_id;
}

bool keep_layout_in(const std::filesystem::path& file) {
  ImGuiSettingsHandler handler;
  handler.TypeName = "Decoscope";
  handler.TypeHash = ImHashStr("Decoscope");
  // Read by version_of() before Dear ImGui sees the file.
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
  if (screen == Screen::Live) live(dockspace);
  if (screen == Screen::Compare) compare(dockspace, size.y);
  if (screen == Screen::Training) training(dockspace);
  ImGui::DockBuilderFinish(dockspace);
}

}  // namespace ui
