// Items that can be clicked are large enough for it, on every screen and sheet.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>

#include "tests/ui/support/replay.h"
#include "tests/ui/support/sized_window.h"
#include "ui/shell/layout.h"
#include "ui/widgets/draw.h"

namespace {

using ui::Screen;

// Token cells are as large as their tokens. Items without a label are Dear ImGui's own: scroll bars, edges between panels, and child windows.
bool is_exempt(const std::string& label) {
  return label.empty() || label == "cell" || label == "row" || label == "bonus";
}

// The visible items of windows.
struct Seen {
  int n_targets = 0;
  std::set<std::string> small;  // those below the least size, with the name of their window
};

// Adds the items of a window and of the windows inside it.
void add_items(ImGuiTestContext* ctx, const ImGuiWindow& window, Seen& seen) {
  ImGuiTestItemList items;
  ctx->GatherItems(&items, window.ID);
  for (const ImGuiTestItemInfo& item : items) {
    if (is_exempt(item.DebugLabel) || item.RectClipped.GetWidth() <= 0 ||
        item.RectClipped.GetHeight() <= 0)
      continue;
    ++seen.n_targets;
    const ImVec2 size = item.RectFull.GetSize();
    constexpr float kRounding = 0.05f;
    if (std::min(size.x, size.y) < ui::px(ui::kLeastTarget) - kRounding)
      seen.small.insert(std::string(item.Window->Name) + ": " + item.DebugLabel + ", " +
                        std::to_string(size.x) + " x " + std::to_string(size.y));
  }
}

// Adds the items of all windows of a frame.
void add_all_items(ImGuiTestContext* ctx, Seen& seen) {
  const ImVector<ImGuiWindow*> windows = ImGui::GetCurrentContext()->Windows;
  for (const ImGuiWindow* window : windows) {
    const bool is_inside = (window->Flags & ImGuiWindowFlags_ChildWindow) && !window->DockIsActive;
    if (window->WasActive && !window->Hidden && !is_inside) add_items(ctx, *window, seen);
  }
}

// Adds the items of every panel of a screen, brought to the front in turn.
void add_panels(ImGuiTestContext* ctx, Screen screen, Seen& seen) {
  for (const char* id : ui::panels_of(screen)) {
    const std::string name = ui::window_name(screen, id, "");
    ImGuiWindow* panel = ImGui::FindWindowByName(name.c_str());
    if (!panel || !panel->DockNode) continue;
    ImGui::FocusWindow(panel);
    ctx->Yield(4);
    add_items(ctx, *panel, seen);
  }
}

TEST(Targets, have_the_least_size_on_every_screen) {
  for (const int scale : {100, 150}) {
    Seen seen;
    scripted::play("targets",
                   [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
                     ui::Shell& shell = *stage.shell;
                     shell.take(streams::race({"ar", "jacobi", "lookahead"}));
                     for (const Screen screen : {Screen::Welcome, Screen::Live, Screen::Compare,
                                                 Screen::Lesson, Screen::Lab, Screen::Training}) {
                       shell.show(screen);
                       ctx->Yield(6);
                       add_all_items(ctx, seen);
                       shell.selection().run = 3;  // has proposals and a pool
                       add_panels(ctx, screen, seen);
                     }
                   },
                   {.width = 1280, .height = 720, .ui_scale = scale});
    if (testing::Test::IsSkipped()) return;
    EXPECT_GT(seen.n_targets, 150) << scale << " %";
    EXPECT_THAT(seen.small, testing::IsEmpty()) << scale << " %";
  }
}

TEST(Targets, have_the_least_size_on_every_sheet) {
  for (const int scale : {100, 150}) {
    Seen seen;
    scripted::play(
        "targets_of_sheets",
        [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
          ui::Shell& shell = *stage.shell;
          shell.take(streams::one_run("lookahead"));
          ctx->Yield(4);
          for (const ui::Action sheet :
               {ui::Action::Settings, ui::Action::Help, ui::Action::Palette, ui::Action::Find,
                ui::Action::Open, ui::Action::Export, ui::Action::Save}) {
            shell.perform(sheet);
            ctx->Yield(4);
            ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
            IM_CHECK(focused != nullptr);
            add_items(ctx, *focused->RootWindow, seen);
            shell.perform(ui::Action::Deselect);
            ctx->Yield(2);
          }
        },
        {.width = 1280, .height = 720, .ui_scale = scale});
    if (testing::Test::IsSkipped()) return;
    EXPECT_GT(seen.n_targets, 60) << scale << " %";
    EXPECT_THAT(seen.small, testing::IsEmpty()) << scale << " %";
  }
}

}  // namespace
