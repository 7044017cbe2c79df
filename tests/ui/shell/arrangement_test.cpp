// The sheet Settings, and undo and redo of settings, notes and layout.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/ui/support/drawn_window.h"
#include "ui/settings/history.h"
#include "ui/shell/layout.h"

namespace {

using testing::HasSubstr;
using namespace ui;

struct Stage : DrawnWindow {
  Stage() {
    shell.take(streams::one_run("lookahead"));
    shell.show(Screen::Live);
    settle();
  }
  void settle() {
    for (int i = 0; i < 5; ++i) said();
  }
  std::string perform(Action action) {
    shell.perform(action);
    settle();
    return said();
  }
  ImGuiWindow* window_of(const char* title) {
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive &&
          std::string_view(window->Name).starts_with(std::string(title) + "###"))
        return window;
    return nullptr;
  }
};

TEST(History, returns_to_each_arrangement_in_turn) {
  History history;
  EXPECT_FALSE(history.undo());
  history.take({"a", {}, ""});
  history.take({"a", {}, ""});
  history.take({"b", {}, ""});
  history.take({"c", {}, ""});
  EXPECT_EQ(history.undo()->settings, "b");
  history.take({"b", {}, ""});  // what undo has set is no change
  EXPECT_EQ(history.undo()->settings, "a");
  EXPECT_FALSE(history.undo());
  EXPECT_EQ(history.redo()->settings, "b");
  history.take({"d", {}, ""});
  EXPECT_FALSE(history.redo()) << "a new change ends what could be redone";
  EXPECT_EQ(history.undo()->settings, "b");
  history.forget();
  EXPECT_FALSE(history.redo());
}

TEST(History, a_layout_that_becomes_known_belongs_to_all_earlier_steps) {
  History history;
  history.take({"a", {}, ""});
  history.take({"b", {}, ""});
  history.know_layout("first");
  history.take({"b", {}, "second"});
  EXPECT_EQ(history.undo()->layout, "first");
  EXPECT_EQ(history.undo()->layout, "first");
}

TEST(History, is_bounded) {
  History history;
  for (int i = 0; i < 1000; ++i) history.take({std::to_string(i), {}, ""});
  std::size_t n = 0;
  while (history.undo()) ++n;
  EXPECT_EQ(n, History::kMost);
}

TEST(Arrangement, settings_are_undone_and_redone) {
  Stage stage;
  stage.perform(Action::NextTheme);
  stage.perform(Action::ScaleUp);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: settings"));
  EXPECT_EQ(stage.shell.settings().scale_percent, 100);
  EXPECT_EQ(stage.shell.settings().theme, ThemeName::Light);
  stage.perform(Action::Undo);
  EXPECT_EQ(stage.shell.settings().theme, ThemeName::Dark);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
  stage.perform(Action::Redo);
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.shell.settings().scale_percent, 110);
  EXPECT_THAT(stage.perform(Action::Redo), HasSubstr("There is nothing to redo."));
}

TEST(Arrangement, a_key_is_undone_while_keys_are_pressed) {
  Stage stage;
  stage.shell.settings().keys["find"] = ImGuiKey_G;
  stage.settle();
  ImGui::GetIO().AddKeyEvent(ImGuiKey_G, true);
  ImGui::GetIO().AddKeyEvent(ImGuiKey_A, true);
  stage.perform(Action::Undo);
  EXPECT_TRUE(stage.shell.settings().keys.empty());
}

TEST(Arrangement, a_bookmark_is_undone) {
  Stage stage;
  stage.shell.selection().locked = {1, 3, -1, -1};
  stage.perform(Action::Bookmark);
  ASSERT_EQ(stage.shell.notes().bookmarks.size(), 1u);
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: notes"));
  EXPECT_TRUE(stage.shell.notes().bookmarks.empty());
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.shell.notes().bookmarks.size(), 1u);
}

TEST(Arrangement, what_the_window_remembers_by_itself_is_no_step) {
  Stage stage;
  stage.shell.settings().recents = {"/a.pdrun"};
  stage.shell.settings().last_folder = "/a";
  stage.settle();
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
  EXPECT_EQ(stage.shell.settings().recents.size(), 1u);
}

TEST(Arrangement, a_moved_panel_returns_to_its_place) {
  Stage stage;
  ImGuiWindow* runs = stage.window_of("Runs");
  ImGuiWindow* text = stage.window_of("Text");
  ASSERT_TRUE(runs && text && runs->DockId != 0);
  const ImGuiID home = runs->DockId, other = text->DockId;
  ASSERT_NE(home, other);
  // As a drag of the tab does: the mouse is down while the panel moves.
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(3, 3);
  io.AddMouseButtonEvent(0, true);
  stage.settle();
  const std::string before = layout_text();
  ImGui::DockBuilderDockWindow(runs->Name, other);
  stage.settle();
  io.AddMouseButtonEvent(0, false);
  stage.settle();
  ASSERT_EQ(runs->DockId, other);
  EXPECT_FALSE(is_same_layout(before, layout_text()));
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("Undone: layout"));
  EXPECT_EQ(stage.window_of("Runs")->DockId, home);
  EXPECT_EQ(stage.window_of("Text")->DockId, other);
  stage.perform(Action::Redo);
  EXPECT_EQ(stage.window_of("Runs")->DockId, other);
}

TEST(Arrangement, a_click_without_a_move_is_no_step) {
  Stage stage;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(3, 3);
  io.AddMouseButtonEvent(0, true);
  stage.settle();
  io.AddMouseButtonEvent(0, false);
  stage.settle();
  EXPECT_THAT(stage.perform(Action::Undo), HasSubstr("There is nothing to undo."));
}

TEST(SettingsSheet, shows_the_settings_and_restores_defaults) {
  Stage stage;
  stage.shell.settings().theme = ThemeName::HighContrast;
  stage.shell.settings().payload_mb = 64;
  const std::string shown = stage.perform(Action::Settings);
  for (const char* part : {"Settings", "High contrast", "100 %", "60", "64 MB", "Folder for files"})
    EXPECT_THAT(shown, HasSubstr(part));
  stage.perform(Action::Deselect);
  EXPECT_THAT(stage.said(), testing::Not(HasSubstr("Folder for files")));
}

TEST(SettingsSheet, opens_and_closes_by_its_key) {
  Stage stage;
  ImGuiIO& io = ImGui::GetIO();
  const auto press = [&] {
    io.AddKeyEvent(ImGuiMod_Ctrl, true);
    io.AddKeyEvent(ImGuiKey_Comma, true);
    stage.settle();
    io.AddKeyEvent(ImGuiKey_Comma, false);
    io.AddKeyEvent(ImGuiMod_Ctrl, false);
    stage.settle();
    return stage.said();
  };
  EXPECT_THAT(press(), HasSubstr("Folder for files"));
  EXPECT_THAT(press(), testing::Not(HasSubstr("Folder for files")));
}

TEST(SettingsSheet, limits_are_saved_and_checked) {
  Settings s;
  s.theme = ThemeName::HighContrast;
  s.frames_per_second = 24;
  s.payload_mb = 512;
  s.save_folder = "/tmp/a b";
  Settings back;
  std::string why;
  ASSERT_TRUE(from_text(to_text(s), back, why)) << why;
  EXPECT_EQ(to_text(back), to_text(s));
  EXPECT_EQ(back.theme, ThemeName::HighContrast);
  for (const char* wrong : {"frames_per_second = 0", "payload_mb = 99999", "theme = pink"})
    EXPECT_FALSE(from_text(wrong, back, why)) << wrong;
}

}  // namespace
