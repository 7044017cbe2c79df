// The panels of lessons, of a training run and of the tabs at several sizes: no label is cut or covered.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/recording/training_history.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/room.h"
#include "tests/ui/support/schedule_stream.h"
#include "tests/ui/support/set_stream.h"
#include "tests/ui/support/sized_window.h"
#include "tests/ui/support/training_folder.h"
#include "ui/lesson/progress.h"
#include "ui/shell/layout.h"
#include "ui/shell/panel.h"

namespace {

using room::cannot_scroll_sideways;
using room::expect_no_overlap;
using room::expect_whole_labels;
using room::is_column;
using testing::IsEmpty;
using ui::Screen;

// Goes through a lesson in a window of a size.
void expect_whole_lesson(const std::string& path, const Size& size) {
  SCOPED_TRACE(testing::Message() << path << " in " << size);
  DrawnWindow window;
  ImGui::GetIO().DisplaySize = {size.width, size.height};
  window.shell.settings().scale_percent = size.scale;
  ASSERT_TRUE(window.shell.open_lesson(path));
  ui::LessonProgress& lesson = *window.shell.lesson();
  for (int view = 0;; ++view) {
    for (int i = 0; i < 6; ++i) window.gui.frame(window.shell);
    expect_no_overlap();
    std::set<std::string> cut;
    for (const glyphs::Glyph& glyph : glyphs::drawn())
      if (is_column(glyph.window) && is_cut_sideways(glyph)) cut.insert(glyph.window);
    EXPECT_THAT(cut, IsEmpty()) << "view " << view;
    if (lesson.at_end()) break;
    lesson.next();
  }
}

TEST(PanelRoom, nothing_of_a_lesson_is_cut_or_covered_at_any_size) {
  for (const Size& size : kSizes)
    expect_whole_lesson(DECOSCOPE_SOURCE_DIR "/assets/lessons/2_draft_and_verify.json", size);
}

TEST(PanelRoom, nothing_of_any_lesson_is_cut_or_covered) {
  int n_lessons = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(DECOSCOPE_SOURCE_DIR "/assets/lessons")) {
    if (entry.path().extension() != ".json") continue;
    ++n_lessons;
    for (const Size& size : {Size{1280, 720, 100}, Size{1280, 720, 150}})
      expect_whole_lesson(entry.path().string(), size);
  }
  EXPECT_EQ(n_lessons, 8);
}

TEST(PanelRoom, nothing_of_a_training_run_is_cut_or_covered_at_any_size) {
  const training_folder::Folder folder;
  folder.fill();
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    SizedWindow window(size, Screen::Training);
    ASSERT_TRUE(window.shell.open_training(folder.path()));
    do window.settle();
    while (window.shell.reads_training());
    ASSERT_EQ(window.shell.training()->reports.size(), 30u);
    expect_no_overlap();
    expect_whole_labels();
  }
}

TEST(PanelRoom, no_tab_cuts_or_covers_its_text) {
  struct Tab {
    const char* panel;
    Screen screen;
    std::vector<engine::Event> events;
  };
  const std::vector<Tab> tabs{
      {"trajectory", Screen::Live, streams::one_run("jacobi")},
      {"pool", Screen::Live, streams::one_run("lookahead")},
      {"pool", Screen::Live, streams::one_run("prompt-lookup")},
      {"tree", Screen::Live, streams::one_run("speculative")},
      {"mask", Screen::Live, streams::one_run("lookahead")},
      {"distributions", Screen::Live, streams::one_run("mcsd")},
      {"agreement", Screen::Live, streams::race({"jacobi", "ar"})},
      {"schedule", Screen::Live, streams::schedule(4, 2)},
      {"log", Screen::Live, streams::failed_run()},
      {"prompts", Screen::Compare,
       streams::set_of_races({.decoders = {"ar", "jacobi"}, .n_prompts = 3})}};
  for (const Size& size : {Size{1280, 720, 100}, Size{1280, 720, 150}, Size{640, 400, 100}}) {
    for (const Tab& tab : tabs) {
      SCOPED_TRACE(testing::Message() << tab.panel << " in " << size);
      DrawnWindow window;
      ImGui::GetIO().DisplaySize = {size.width, size.height};
      window.shell.settings().scale_percent = size.scale;
      window.shell.take(tab.events);
      window.shell.show(tab.screen);
      window.said();
      const std::string id = ui::window_name(tab.screen, tab.panel, "");
      ImGui::SetWindowFocus(id.c_str());
      for (int i = 0; i < 6; ++i) window.gui.frame(window.shell);
      const ImGuiWindow* panel = ImGui::FindWindowByName(id.c_str());
      ASSERT_NE(panel, nullptr);
      EXPECT_TRUE(panel->DockTabIsVisible);
      std::vector<glyphs::Glyph> text;
      std::set<std::string> cut;
      int n_glyphs = 0;
      for (const glyphs::Glyph& glyph : glyphs::drawn()) {
        if (!glyph.window.starts_with(panel->Name)) continue;
        ++n_glyphs;
        // The labels at the left edge cover cells that are scrolled under them.
        if (ImGui::FindWindowByName(glyph.window.c_str())->Scroll.x == 0) text.push_back(glyph);
        const bool is_inside = is_column(glyph.window) || cannot_scroll_sideways(glyph.window);
        if (is_inside && is_cut_sideways(glyph)) cut.insert(glyph.window);
      }
      EXPECT_GT(n_glyphs, 20);
      EXPECT_THAT(cut, IsEmpty());
      EXPECT_THAT(glyphs::covering(text), IsEmpty());
    }
  }
}

}  // namespace
