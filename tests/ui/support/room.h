// The windows and labels of a drawn frame: none may be cut or covered.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/ui/support/glyphs.h"
#include "ui/widgets/draw.h"

namespace room {

/// Returns the windows of the last frame that are not inside another one.
inline std::vector<ImGuiWindow*> panels_in_front() {
  std::vector<ImGuiWindow*> found;
  for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    const bool is_ground = std::string_view(window->Name).starts_with("##ground") ||
                           (window->Flags & ImGuiWindowFlags_DockNodeHost);
    if (!window->WasActive || window->Hidden || is_ground) continue;
    if (window->Flags & (ImGuiWindowFlags_ChildWindow | ImGuiWindowFlags_Tooltip) &&
        !window->DockIsActive)
      continue;
    if (std::string_view(window->Name).starts_with("Debug##")) continue;
    found.push_back(window);
  }
  return found;
}

/// Expects that these windows are inside the screen and do not cover each other.
inline void expect_no_overlap() {
  const auto all = panels_in_front();
  EXPECT_GE(all.size(), 2u);
  const ImRect screen({0, 0}, ImGui::GetIO().DisplaySize);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(screen.Contains(all[i]->Rect())) << all[i]->Name;
    EXPECT_GT(all[i]->InnerRect.GetHeight(), ui::px(14)) << all[i]->Name;
    for (std::size_t j = i + 1; j < all.size(); ++j)
      EXPECT_FALSE(all[i]->Rect().Overlaps(all[j]->Rect()))
          << all[i]->Name << " and " << all[j]->Name;
  }
}

/// Returns true for a bar, and for a lane without its answer that is whole on the screen.
inline bool is_head(const std::string& name) {
  if (name == "##top" || name == "##status") return true;
  if (name.find("/lane") == std::string::npos || name.find("/text_") != std::string::npos)
    return false;
  const ImGuiWindow* lane = ImGui::FindWindowByName(name.c_str());
  return lane && lane->OuterRectClipped.GetWidth() > lane->Rect().GetWidth() - 1;
}

/// Returns true for a panel, or a part of it, that has no scroll bar for content that is wider.
inline bool cannot_scroll_sideways(const std::string& name) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
  return window && !(window->Flags & ImGuiWindowFlags_HorizontalScrollbar);
}

/// Returns true for a panel, or a part of it, that keeps its text inside. Trajectory, Tree, Mask, Thoughts and the tables of Difference and
/// Prompts have a scroll bar if they are wider than the panel. Timeline is exempt: the words of its slices go on outside the visible range.
inline bool is_column(const std::string& name) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
  if (!window || (window->ScrollMax.x > 0 && !cannot_scroll_sideways(name))) return false;
  for (const char* panel : {"Setup###",
                            "Numbers###",
                            "Difference###",
                            "Inspector###",
                            "Runs###",
                            "Machine###",
                            "Trajectory###",
                            "Pool###",
                            "Tree###",
                            "Mask###",
                            "P/Q###",
                            "Schedule###",
                            "Thoughts###",
                            "Agreement###",
                            "Log###",
                            "Prompts###",
                            "Training###",
                            "Loss###",
                            "Probes###",
                            "Speed and step size###",
                            "Trajectory, probe by probe###",
                            "##lesson_card"})
    if (name.starts_with(panel)) return true;
  return false;
}

/// Returns true if a character is in the head of docked panels, where the names of the tabs are.
inline bool is_in_head(const glyphs::Glyph& glyph) {
  for (const ImGuiStoragePair& one : ImGui::GetCurrentContext()->DockContext.Nodes.Data) {
    const auto* node = static_cast<const ImGuiDockNode*>(one.val_p);
    if (!node || !node->TabBar || !node->HostWindow || glyph.window != node->HostWindow->Name)
      continue;
    const ImRect& bar = node->TabBar->BarRect;
    if (ImRect(node->Pos.x, bar.Min.y, node->Pos.x + node->Size.x, bar.Max.y)
            .Contains(glyph.seen.GetCenter()))
      return true;
  }
  return false;
}

/// Expects that no character of bars, tabs, heads of lanes and columns is cut, and that no two characters cover each other.
inline void expect_whole_labels() {
  const std::vector<glyphs::Glyph> all = glyphs::drawn();
  EXPECT_GT(all.size(), 100u);
  std::set<std::string> cut;
  int n_heads = 0;
  for (const glyphs::Glyph& glyph : all) {
    if (is_column(glyph.window) && is_cut_sideways(glyph)) cut.insert(glyph.window);
    if (is_in_head(glyph) && is_cut_sideways(glyph)) cut.insert("a tab of " + glyph.window);
    if (!is_head(glyph.window)) continue;
    ++n_heads;
    if (is_cut_sideways(glyph) || is_cut_in_height(glyph)) cut.insert(glyph.window);
  }
  EXPECT_GT(n_heads, 20);
  EXPECT_THAT(cut, testing::IsEmpty());
  EXPECT_THAT(glyphs::covering(all), testing::IsEmpty());
}

}  // namespace room
