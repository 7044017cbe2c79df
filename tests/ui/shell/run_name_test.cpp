// Every panel that shows the selected run says which run it is.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/sized_window.h"
#include "ui/lesson/progress.h"
#include "ui/prepare/status.h"
#include "ui/shell/layout.h"
#include "ui/shell/panel.h"

namespace {

using testing::HasSubstr;
using testing::Not;
using ui::Screen;

constexpr std::array<std::string_view, 2> kNames{"Alookahead", "Bspeculative"};  // without blanks

// A window with a race of two decoders.
struct TwoRuns : DrawnWindow {
  TwoRuns(const Size& size, Screen screen) {
    ImGui::GetIO().DisplaySize = {size.width, size.height};
    shell.settings().scale_percent = size.scale;
    shell.take(streams::race({"lookahead", "speculative"}, 300));
    shell.show(screen);
    settle();
  }
  void settle() {
    for (int i = 0; i < 6; ++i) gui.frame(shell);
  }
  // Brings a panel to the front. @return its window; nullptr if it has no tab
  const ImGuiWindow* front(Screen screen, const char* id) {
    const std::string name = ui::window_name(screen, id, "");
    if (!ImGui::FindWindowByName(name.c_str())) return nullptr;
    ImGui::SetWindowFocus(name.c_str());
    settle();
    return ImGui::FindWindowByName(name.c_str());
  }
};

// True for a panel that shows no run, or all of them.
bool is_of_session(std::string_view id) {
  return id == "setup" || id == "runs" || id == "log" || id == "machine";
}

// Returns the text of a panel and its head, without the link "Show run .." to a run that the panel can show (the S may hide under its frame).
std::string text_of(const ImGuiWindow& window) {
  const ImGuiDockNode& node = *window.DockNode;
  std::string text =
      glyphs::text_in({node.Pos, {node.Pos.x + node.Size.x, node.Pos.y + node.Size.y}});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::string link = "howrun" + std::to_string(i + 1) + "," + std::string(kNames[i]);
    if (const std::size_t at = text.find(link); at != std::string::npos)
      text.erase(at, link.size());
  }
  return text;
}

TEST(RunName, every_panel_of_a_run_says_which) {
  for (const Size& size : {Size{1280, 720, 100}, Size{1600, 1000, 100}, Size{2560, 1440, 200}}) {
    for (const Screen screen : {Screen::Live, Screen::Lab}) {
      TwoRuns window(size, screen);
      int n_checked = 0;
      for (const char* id : ui::panels_of(screen)) {
        if (is_of_session(id)) continue;
        for (std::size_t run = 0; run < kNames.size(); ++run) {
          window.shell.selection().run = static_cast<engine::RunId>(run + 1);
          window.settle();
          const ImGuiWindow* panel = window.front(screen, id);
          if (!panel) continue;
          SCOPED_TRACE(testing::Message() << size << ", " << id << ", run " << run + 1);
          ASSERT_TRUE(panel->DockTabIsVisible);
          // A head without room shortens the name; its letter and the begin of the decoder remain.
          EXPECT_THAT(text_of(*panel), HasSubstr(std::string(kNames[run].substr(0, 4))));
          EXPECT_THAT(text_of(*panel), Not(HasSubstr(std::string(kNames[1 - run].substr(0, 4)))));
          ++n_checked;
        }
      }
      EXPECT_GE(n_checked, screen == Screen::Live ? 20 : 8);
    }
  }
}

TEST(RunName, panels_of_a_lesson_say_which_run_they_show) {
  int n_checked = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(DECOSCOPE_SOURCE_DIR "/assets/lessons")) {
    if (file.path().extension() != ".json") continue;
    DrawnWindow window;
    ASSERT_TRUE(window.shell.open_lesson(file.path().string()));
    ui::LessonProgress& lesson = *window.shell.lesson();
    for (;; lesson.next()) {
      for (int i = 0; i < 6; ++i) window.gui.frame(window.shell);
      const engine::Timeline& timeline = window.shell.session().shown().timeline;
      const engine::RunRecord* run = timeline.run(window.shell.selection().run);
      for (const std::string& id : lesson.view().panels) {
        const ui::Panel* panel = ui::panel_named(id.c_str());
        ASSERT_NE(panel, nullptr);
        if (!run || !panel->names_run || panel->live == ui::Dock::None ||
            timeline.runs().size() < 2)
          continue;
        SCOPED_TRACE(testing::Message() << file.path() << ", " << id);
        std::string name = "run" + std::to_string(run->id()) + ui::name_of(*run);
        std::erase(name, ' ');
        const ImGuiWindow* shown =
            ImGui::FindWindowByName(ui::window_name(Screen::Lesson, id.c_str(), "").c_str());
        ASSERT_NE(shown, nullptr);
        EXPECT_THAT(glyphs::text_in(shown->Rect()), HasSubstr(name));
        ++n_checked;
      }
      if (lesson.at_end()) break;
    }
  }
  EXPECT_GT(n_checked, 0);
}

TEST(RunName, cuts_and_covers_nothing_in_a_head) {
  for (const Size& size : kSizes) {
    TwoRuns window(size, Screen::Live);
    window.shell.notes().run_names[2] = "a name that goes on and on, longer than any head";
    window.shell.selection().run = 2;
    for (const char* id : ui::panels_of(Screen::Live)) {
      const ImGuiWindow* panel = window.front(Screen::Live, id);
      if (!panel) continue;
      SCOPED_TRACE(testing::Message() << size << ", " << id);
      std::vector<glyphs::Glyph> heads;
      for (const glyphs::Glyph& glyph : glyphs::drawn())
        if (glyph.window == panel->DockNode->HostWindow->Name) heads.push_back(glyph);
      EXPECT_GT(heads.size(), 3u);
      EXPECT_THAT(glyphs::covering(heads), testing::IsEmpty());
      const ImRect& bar = panel->DockNode->TabBar->BarRect;
      if (panel->DockNode->TabBar->WidthAllTabs > bar.GetWidth()) continue;  // the tabs scroll
      for (const glyphs::Glyph& glyph : heads)
        if (bar.Contains(glyph.seen.GetCenter())) {
          EXPECT_FALSE(glyphs::is_cut_sideways(glyph));
        }
    }
  }
}

TEST(RunName, a_session_with_one_run_is_quiet) {
  DrawnWindow window;
  window.shell.take(streams::one_run("lookahead"));
  window.shell.show(Screen::Live);
  EXPECT_THAT(window.said(), Not(HasSubstr("run 1 lookahead")));
  std::vector<engine::Event> more = streams::one_run("jacobi", 96, 2);
  more.erase(more.begin());  // the model is loaded
  window.shell.take(std::move(more));
  window.shell.selection().run = 1;
  EXPECT_THAT(window.said(), HasSubstr("run 1 lookahead"));
}

TEST(RunName, captions_of_pictures_name_the_runs) {
  const engine::Timeline race = timeline_of(streams::race({"ar", "jacobi"}));
  EXPECT_THAT(ui::caption_words("0.1", race, race.race(1)),
              testing::StartsWith("Decoscope 0.1 \xC2\xB7 A AR, B jacobi \xC2\xB7 "));
  const engine::Timeline one = timeline_of(streams::one_run("lookahead"));
  EXPECT_THAT(ui::caption_words("0.1", one, {one.run(1)}), HasSubstr(" lookahead "));
}

}  // namespace
