// The window at every size: panels give up their places before the text of the answer does, and no label is cut or covered.
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>

#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/room.h"
#include "tests/ui/support/sized_window.h"
#include "ui/files/setup_form.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/setup/setup_rows.h"
#include "ui/panels/time/gantt_picture.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/playhead.h"
#include "ui/shell/layout.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace {

using room::expect_no_overlap;
using room::expect_whole_labels;
using room::is_head;
using room::panels_in_front;
using testing::IsEmpty;
using ui::Screen;

using Window = SizedWindow;

// Returns how many whole lines of cells a window shows.
int whole_lines(const ImGuiWindow& window) {
  return static_cast<int>(window.InnerClipRect.GetHeight() / ui::px(ui::kTokenLine));
}

TEST(Room, nothing_is_cut_or_covered_at_any_size) {
  for (const Size& size : kSizes) {
    for (const Screen screen :
         {Screen::Welcome, Screen::Live, Screen::Compare, Screen::Training, Screen::Lab}) {
      SCOPED_TRACE(testing::Message() << size << ", " << ui::screen_name(screen));
      Window window(size, screen);
      expect_no_overlap();
      expect_whole_labels();
    }
  }
}

// Returns the dock nodes of the screen's panels.
std::set<ImGuiID> places(Screen screen) {
  std::set<ImGuiID> ids;
  for (const char* id : ui::panels_of(screen))
    if (const ImGuiWindow* window =
            ImGui::FindWindowByName(ui::window_name(screen, id, "").c_str()))
      ids.insert(window->DockId);
  return ids;
}

// Returns the window of the sheet in front and those inside it.
std::vector<const ImGuiWindow*> sheet_in_front() {
  std::vector<const ImGuiWindow*> found;
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  if (!focused || focused->DockIsActive) return found;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && !window->Hidden && window->RootWindow == focused->RootWindow)
      found.push_back(window);
  return found;
}

TEST(Room, nothing_of_a_sheet_is_cut_or_covered_at_any_size) {
  constexpr ui::Action kSheets[] = {ui::Action::Settings, ui::Action::Help, ui::Action::Palette,
                                    ui::Action::Find,     ui::Action::Open, ui::Action::Export,
                                    ui::Action::Save};
  for (const Size& size : kSizes) {
    for (const ui::Action sheet : kSheets) {
      SCOPED_TRACE(testing::Message() << size << ", sheet " << static_cast<int>(sheet));
      Window window(size, Screen::Live);
      window.shell.perform(sheet);
      window.settle();
      const auto windows = sheet_in_front();
      ASSERT_FALSE(windows.empty());
      const ImRect screen({0, 0}, ImGui::GetIO().DisplaySize);
      EXPECT_TRUE(screen.Contains(windows[0]->RootWindow->Rect())) << windows[0]->RootWindow->Name;
      std::set<std::string> names, cut;
      for (const ImGuiWindow* one : windows) names.insert(one->Name);
      std::vector<glyphs::Glyph> all;
      for (const glyphs::Glyph& glyph : glyphs::drawn()) {
        if (!names.contains(glyph.window)) continue;
        all.push_back(glyph);
        if (is_cut_sideways(glyph)) cut.insert(glyph.window);
      }
      EXPECT_GT(all.size(), 20u);
      EXPECT_THAT(cut, IsEmpty());
      EXPECT_THAT(glyphs::covering(all), IsEmpty());
    }
  }
}

TEST(Room, the_panel_runs_has_its_least_height) {
  int n_checked = 0;
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    Window window(size, Screen::Live);
    if (places(Screen::Live).size() < 8) continue;  // Runs is a tab of a higher part
    const ImGuiWindow* runs = ImGui::FindWindowByName("Runs###live.runs");
    ASSERT_NE(runs, nullptr);
    EXPECT_GE(runs->Size.y, ui::px(145));
    ++n_checked;
  }
  EXPECT_GE(n_checked, 3);
}

TEST(Room, a_lane_shows_four_lines_of_its_answer) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    Window window(size);
    int n_lanes = 0;
    for (const ImGuiWindow* text : ImGui::GetCurrentContext()->Windows) {
      const std::string name = text->Name;
      if (!text->WasActive || name.find("/lane") == std::string::npos ||
          name.find("/text_") == std::string::npos)
        continue;
      ++n_lanes;
      EXPECT_GT(text->ScrollMax.y, 0) << "the answer is longer";
      EXPECT_GE(whole_lines(*text), 4) << name;
      // The figures are above the answer, whole.
      EXPECT_GE(text->ParentWindow->Size.x, ui::px(150));
    }
    EXPECT_GE(n_lanes, 3) << "of five; the others are reached by scrolling";
  }
}

TEST(Room, the_text_of_a_run_has_four_lines) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    Window window(size, Screen::Live);
    const ImGuiWindow* text = ImGui::FindWindowByName("Text###live.text");
    ASSERT_NE(text, nullptr);
    EXPECT_TRUE(text->DockTabIsVisible);
    EXPECT_GT(text->ScrollMax.y, 0);
    EXPECT_GE(whole_lines(*text), 4);
  }
}

TEST(Room, a_default_layout_follows_the_size) {
  Window window({1600, 1000, 100}, Screen::Live);
  EXPECT_EQ(places(Screen::Live).size(), 8u);
  const auto at = [&](float width, float height) {
    ImGui::GetIO().DisplaySize = {width, height};
    window.settle();
    return places(Screen::Live).size();
  };
  EXPECT_EQ(at(850, 480), 3u);
  EXPECT_EQ(at(640, 400), 1u);
  EXPECT_EQ(at(1600, 1000), 8u);
}

TEST(Room, a_layout_of_the_user_stays_at_every_size) {
  Window window({1600, 1000, 100}, Screen::Live);
  ImGuiWindow* machine = ImGui::FindWindowByName("Machine###live.machine");
  const ImGuiID text = ImGui::FindWindowByName("Text###live.text")->DockId;
  ImGui::DockBuilderDockWindow(machine->Name, text);
  window.settle();
  EXPECT_EQ(machine->DockId, text);
  ImGui::GetIO().DisplaySize = {850, 480};
  window.settle();
  EXPECT_EQ(machine->DockId, text);
  EXPECT_GT(places(Screen::Live).size(), 3u);
}

TEST(Room, a_small_window_reduces_the_scale) {
  Window window({640, 400, 200});
  EXPECT_FLOAT_EQ(ui::px(100), 100);
  EXPECT_EQ(window.shell.settings().scale_percent, 200) << "the setting stays";
  ImGui::GetIO().DisplaySize = {1280, 800};
  window.settle();
  EXPECT_FLOAT_EQ(ui::px(100), 200);
}

// Returns the left and the right end of each control of the playhead. The test fails if they are in a popup.
std::vector<std::pair<float, float>> controls_of_playhead(ImGuiTestContext* ctx, Screen screen) {
  std::vector<std::pair<float, float>> ends;
  const ImGuiWindow* panel = ImGui::FindWindowByName(ui::window_name(screen, "gantt", "").c_str());
  if (!panel || !panel->DockNode) return ends;
  ctx->SetRef(panel->DockNode->HostWindow);
  for (const char* id : {"**/|<##start", "**/###play", "**/>|##end"}) {
    const ImRect rect = ctx->ItemInfo(id).RectFull;
    ends.emplace_back(rect.Min.x, rect.Max.x);
  }
  return ends;
}

TEST(Room, controls_of_the_playhead_have_fixed_places) {
  for (const Screen screen : {Screen::Live, Screen::Compare}) {
    scripted::play(
        "controls",
        [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
          ui::Shell& shell = *stage.shell;
          shell.take(screen == Screen::Live ? streams::one_run("lookahead", 300)
                                            : streams::race({"ar", "jacobi"}, 300));
          shell.show(screen);
          ctx->Yield(6);
          IM_CHECK(shell.playhead().follows());
          const auto following = controls_of_playhead(ctx, screen);
          IM_CHECK_EQ(following.size(), std::size_t{3});
          for (const auto& [left, right] : following) IM_CHECK_GT(right - left, ui::px(20));
          // Paused in the middle, where the distance to the end is long.
          ctx->SetRef(ImGui::FindWindowByName(ui::window_name(screen, "gantt", "").c_str()));
          ctx->ItemClick("ruler");
          ctx->Yield(3);
          IM_CHECK(!shell.playhead().follows());
          IM_CHECK(controls_of_playhead(ctx, screen) == following);
          ctx->ItemClick("**/|<##start");
          ctx->Yield(2);
          IM_CHECK_EQ(shell.playhead().at, 0.0);
          // Playing, at a speed with a long name that is too low to reach the end.
          shell.playhead().speed = 0.05;
          ctx->ItemClick("**/###play");
          ctx->Yield(2);
          IM_CHECK(shell.playhead().mode == ui::Playhead::Mode::Playing);
          const auto playing = controls_of_playhead(ctx, screen);
          IM_CHECK_EQ(playing.size(), following.size());
          for (std::size_t i = 0; i < 3; ++i) IM_CHECK(playing[i] == following[i]);
          ctx->ItemClick("**/###play");
          IM_CHECK(shell.playhead().mode == ui::Playhead::Mode::Paused);
          ctx->ItemClick("**/###follow");
          ctx->Yield(2);
          IM_CHECK(shell.playhead().follows());
        },
        {.width = 1280, .height = 720});
  }
}

TEST(Room, a_short_label_keeps_the_baseline) {
  DrawnWindow window;
  window.said();
  window.gui.said([] {
    ImGui::Begin("labels");
    const auto width_of = [](const char* text) { return ImGui::CalcTextSize(text).x; };
    const std::string whole = "speed-up vs run 12";
    EXPECT_EQ(ui::label_within(whole, width_of(whole.c_str()) + 1), whole);
    EXPECT_EQ(ui::label_within(whole, width_of(whole.c_str()) - 1), "vs run 12");
    EXPECT_EQ(ui::label_within("tokens / step", width_of("tok/step") + 1), "tok/step");
    ImGui::End();
  });
}

TEST(Room, numbers_name_the_baseline_at_every_size) {
  for (const Size& size : {Size{1280, 720, 100}, Size{1280, 720, 150}, Size{1600, 1000, 100}}) {
    SCOPED_TRACE(testing::Message() << size);
    Window window(size);
    window.shell.selection().run = 3;
    window.shell.show(Screen::Live);
    window.settle();
    ImGui::SetWindowFocus("Numbers###live.numbers");
    window.settle();
    EXPECT_THAT(window.said(), testing::HasSubstr("vs run 1"));
  }
}

TEST(Room, the_word_at_the_end_of_a_lane_is_whole) {
  DrawnWindow window;
  window.said();
  ui::gantt::Picture picture;
  picture.x0 = 100, picture.x1 = 500, picture.words_end = 540;
  using ui::gantt::end_word_at;
  EXPECT_FLOAT_EQ(*end_word_at(picture, 300, 30), 300 + ui::px(4));
  EXPECT_FLOAT_EQ(*end_word_at(picture, 500, 30), 500 + ui::px(4)) << "clear of the slices";
  EXPECT_FALSE(end_word_at(picture, 99, 30)) << "the end is left of the visible range";
  EXPECT_FALSE(end_word_at(picture, 520, 30));
  EXPECT_FALSE(end_word_at(picture, 500, 38)) << "no room";
  // Every word has room at the end of the axis.
  float room = 0;
  window.gui.said([&] {
    ImGui::Begin("words");
    room = ui::gantt::room_for_end_words();
    EXPECT_GT(room,
              ui::px(4) + ImGui::CalcTextSize("stopped").x * ui::px(12) / ImGui::GetFontSize());
    ImGui::End();
  });
}

TEST(Room, timelines_cut_no_word_at_their_right_edge) {
  for (const Size& size : {Size{1280, 720, 100}, Size{1600, 1000, 100}}) {
    SCOPED_TRACE(testing::Message() << size);
    Window window(size);
    // The visible range ends at the end of the slowest lane, where its word has no room on the right.
    ui::Playhead& playhead = window.shell.playhead();
    ASSERT_TRUE(playhead.follows());
    playhead.mode = ui::Playhead::Mode::Paused;
    auto& range = window.shell.state<ui::TimelineView>().range;
    range.t0 = 0, range.t1 = playhead.at;
    window.settle();
    const ImGuiWindow* timelines =
        ImGui::FindWindowByName(ui::window_name(Screen::Compare, "gantt", "").c_str());
    ASSERT_NE(timelines, nullptr);
    int n_glyphs = 0;
    for (const glyphs::Glyph& glyph : glyphs::drawn()) {
      if (glyph.window != timelines->Name) continue;
      ++n_glyphs;
      const bool at_edge = glyph.seen.Max.x > timelines->WorkRect.Max.x - ui::px(8);
      EXPECT_FALSE(at_edge && is_cut_sideways(glyph));
    }
    EXPECT_GT(n_glyphs, 20);
  }
}

TEST(Room, a_field_of_setup_keeps_its_width) {
  DrawnWindow window;
  window.said();
  for (const float width : {120.0f, 190.0f, 300.0f}) {
    float field = 0;
    window.gui.said([&] {
      ImGui::SetNextWindowSize({width, 200});
      ImGui::Begin("rows");
      ui::row_label("repetition penalty", "");
      field = ImGui::CalcItemWidth();
      ImGui::Dummy({1, 1});
      ImGui::End();
    });
    EXPECT_GE(field, 80) << width;
  }
}

// Draws the row of an option with a long label in a window of a width. @return the width of its field
float field_of_option(DrawnWindow& window, float width, std::string& said) {
  const ui::CatalogOption option{.name = "draft_temperature",
                                 .type = ui::CatalogOption::Type::Choice,
                                 .default_value = "one",
                                 .choices = {"one"},
                                 .help = "Help."};
  ui::LaneForm lane{.decoder = "speculative", .options = {{option.name, "one"}}};
  float field = 0;
  said = window.gui.said([&] {
    ImGui::SetNextWindowSize({width, 200});
    ImGui::Begin("options");
    ui::option_row(lane, window.catalog, option, "");
    field = ImGui::GetItemRectSize().x;
    ImGui::End();
  });
  return field;
}

TEST(Room, a_long_label_of_an_option_is_whole) {
  DrawnWindow window;
  for (const int scale : {100, 150}) {
    window.shell.settings().scale_percent = scale;
    window.said();
    bool named = false;
    for (float width = ui::px(110); width < ui::px(640); width += ui::px(10)) {
      SCOPED_TRACE(testing::Message() << width << " at " << scale << " %");
      std::string said;
      EXPECT_GE(field_of_option(window, width, said), ui::px(70));
      EXPECT_THAT(said, testing::HasSubstr("draft temperature"));
      EXPECT_THAT(said, testing::Not(testing::HasSubstr("...")));
      named |= said.find("draft temperature draft_temperature") != std::string::npos;
      for (const glyphs::Glyph& glyph : glyphs::drawn())
        EXPECT_FALSE(glyph.window == "options" && is_cut_sideways(glyph));
    }
    EXPECT_TRUE(named) << "a wide row has the option's name beside its label";
  }
}

TEST(Room, options_of_setup_have_whole_labels) {
  for (const int scale : {100, 150}) {
    DrawnWindow window;
    ImGui::GetIO().DisplaySize = {1280, 720};
    window.shell.settings().scale_percent = scale;
    window.shell.show(Screen::Live);
    window.said();
    for (const ui::CatalogDecoder& decoder : window.catalog.decoders) {
      SCOPED_TRACE(testing::Message() << decoder.name << " at " << scale << " %");
      window.shell.form().live = ui::lane_with(window.catalog, decoder.name);
      ImGui::SetWindowFocus("Setup###live.setup");
      const std::string said = window.said();
      for (const ui::CatalogOption& option : decoder.options)
        EXPECT_THAT(said, testing::HasSubstr(ui::option_label(decoder.name, option.name)));
      expect_whole_labels();
    }
  }
}

TEST(Room, a_lane_of_setup_has_its_whole_model) {
  for (const Size& size : {Size{1280, 720, 100}, Size{1280, 720, 150}}) {
    SCOPED_TRACE(testing::Message() << size);
    DrawnWindow window;
    ImGui::GetIO().DisplaySize = {size.width, size.height};
    window.shell.settings().scale_percent = size.scale;
    window.shell.show(Screen::Compare);
    window.said();
    const std::string model = "A-Language-Model-135M-Instruct.Q4_1-with-a-long-name";
    window.shell.form().lanes.at(1).model = model;
    ImGui::SetWindowFocus("Setup###compare.setup");
    EXPECT_THAT(window.said(), testing::HasSubstr(model));
    expect_whole_labels();
  }
}

// Returns the visible characters in a column at the left edge of a panel, as the places of their left upper corners.
std::set<std::pair<int, int>> at_left_edge(const ImGuiWindow& panel, float wide) {
  std::set<std::pair<int, int>> found;
  for (const glyphs::Glyph& glyph : glyphs::drawn())
    if (glyph.window == panel.Name && glyph.seen.Max.x < panel.InnerRect.Min.x + wide)
      found.emplace(std::lround(glyph.box.Min.x), std::lround(glyph.box.Min.y));
  return found;
}

TEST(Room, labels_of_lookaheads_window_stay_when_it_is_scrolled) {
  Window window({1280, 720, 100}, Screen::Live);
  ImGuiWindow* panel = ImGui::FindWindowByName("Trajectory###live.trajectory");
  ASSERT_NE(panel, nullptr);
  // In the narrow column of Setup the window is wider than the panel.
  ImGui::DockBuilderDockWindow(panel->Name, ImGui::FindWindowByName("Setup###live.setup")->DockId);
  window.settle();
  ImGui::SetWindowFocus(panel->Name);
  window.settle();
  ASSERT_GT(panel->ScrollMax.x, ui::px(80));
  const auto before = at_left_edge(*panel, ui::px(66));
  EXPECT_GT(before.size(), 40u);
  ImGui::SetScrollX(panel, ui::px(80));
  window.settle();
  EXPECT_EQ(panel->Scroll.x, ui::px(80));
  EXPECT_THAT(at_left_edge(*panel, ui::px(66)), testing::IsSupersetOf(before));
}

TEST(Room, the_word_of_a_lane_is_inside_it) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    Window window(size);
    // No name has room beside the word.
    for (engine::RunId run = 1; run <= 5; ++run)
      window.shell.notes().run_names[run] = "the run with a very long name that is cut";
    window.settle();
    int n_checked = 0;
    for (const glyphs::Glyph& glyph : glyphs::drawn()) {
      if (!is_head(glyph.window) || glyph.window.starts_with("##")) continue;
      const ImGuiWindow* lane = ImGui::FindWindowByName(glyph.window.c_str());
      EXPECT_LE(glyph.box.Max.x, lane->WorkRect.Max.x + 1.5f) << glyph.window;
      ++n_checked;
    }
    EXPECT_GT(n_checked, 20);
    EXPECT_THAT(window.said(), testing::HasSubstr(" base"));
  }
  // In a wide lane the whole word is shown, also while the words of other lanes have no room.
  Window window({1600, 1000, 100});
  window.shell.notes().run_names[2] = "the run with a very long name that is cut";
  window.settle();
  EXPECT_THAT(window.said(), testing::HasSubstr(" baseline"));
}

TEST(Room, presentation_mode_keeps_to_the_safe_area) {
  for (const Size& size :
       {Size{1600, 1000, 100}, Size{1280, 720, 100}, Size{1280, 720, 150}, Size{1024, 768, 100}}) {
    for (const Screen screen : {Screen::Welcome, Screen::Live, Screen::Compare, Screen::Training,
                                Screen::Lesson, Screen::Lab}) {
      SCOPED_TRACE(testing::Message() << size << ", " << ui::screen_name(screen));
      Window window(size, screen);
      window.shell.perform(ui::Action::Present);
      window.settle();
      // 16:9 in the middle. The safe area omits 3.5 % at each side; 0.94 leaves half a percent for rounding at each side.
      const float wide = 0.94f * std::min(size.width, size.height * 16 / 9), high = wide * 9 / 16;
      const ImRect safe({(size.width - wide) / 2, (size.height - high) / 2},
                        {(size.width + wide) / 2, (size.height + high) / 2});
      for (const ImGuiWindow* panel : panels_in_front())
        EXPECT_TRUE(safe.Contains(panel->Rect())) << panel->Name;
      if (screen != Screen::Lesson) expect_whole_labels();
      window.shell.perform(ui::Action::Settings);
      window.settle();
      const auto sheets = sheet_in_front();
      ASSERT_FALSE(sheets.empty());
      for (const ImGuiWindow* sheet : sheets)
        EXPECT_TRUE(safe.Contains(sheet->RootWindow->Rect())) << sheet->Name;
      window.shell.perform(ui::Action::Deselect);
      window.shell.perform(ui::Action::Present);
      window.settle();
      if (screen == Screen::Lesson) continue;
      EXPECT_EQ(ImGui::FindWindowByName("##top")->Size.x, size.width);
    }
  }
}

TEST(Room, a_list_has_the_names_of_all_tabs_where_they_do_not_fit) {
  scripted::play(
      "tabs",
      [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
        stage.shell->take(streams::one_run("lookahead", 300));
        ctx->Yield(6);
        ImGuiDockNode* node = ImGui::FindWindowByName("Trajectory###live.trajectory")->DockNode;
        IM_CHECK(node && node->TabBar);
        IM_CHECK_GT(node->TabBar->WidthAllTabsIdeal, node->TabBar->BarRect.GetWidth());
        const ImGuiID list = ImHashStr("#COLLAPSE", 0, node->ID);
        std::vector<std::string> ids;
        for (const ImGuiTabItem& tab : node->TabBar->Tabs)
          ids.push_back(
              std::string(tab.Window->Name).substr(std::string_view(tab.Window->Name).find("###")));
        IM_CHECK_GT(ids.size(), std::size_t{4});
        for (const std::string& id : ids) {
          ctx->ItemClick(list);
          ctx->Yield(2);
          IM_CHECK(ctx->ItemExists(("//$FOCUSED/" + id).c_str()));
          ctx->ItemClick(("//$FOCUSED/" + id).c_str());
          ctx->Yield(6);
          const ImGuiWindow* panel = ImGui::FindWindowByName(id.c_str());
          IM_CHECK(panel && panel->DockTabIsVisible);
          // Its tab has been scrolled into view, whole.
          node = panel->DockNode;
          for (const ImGuiTabItem& tab : node->TabBar->Tabs) {
            if (tab.Window != panel) continue;
            IM_CHECK_GE(tab.Offset - node->TabBar->ScrollingTarget, -1.0f);
            IM_CHECK_LE(tab.Offset + tab.Width - node->TabBar->ScrollingTarget,
                        node->TabBar->BarRect.GetWidth() + 1);
          }
        }
      },
      {.width = 1280, .height = 720, .ui_scale = 150});
}

TEST(Room, tabs_that_fit_have_no_list) {
  int n_with = 0, n_without = 0;
  for (const Size& size : kSizes) {
    for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Lab}) {
      SCOPED_TRACE(testing::Message() << size << ", " << ui::screen_name(screen));
      Window window(size, screen);
      for (const ImGuiID id : places(screen)) {
        const ImGuiDockNode* node = ImGui::DockBuilderGetNode(id);
        if (!node || !node->TabBar) continue;
        bool fits = true;  // every tab is drawn whole
        for (const ImGuiTabItem& tab : node->TabBar->Tabs)
          fits = fits && tab.Width > tab.ContentWidth - 1 &&
                 tab.Offset + tab.Width < node->TabBar->BarRect.GetWidth() + 1;
        EXPECT_EQ(node->HasWindowMenuButton, !fits) << node->TabBar->Tabs.Size << " tabs";
        ++(fits ? n_without : n_with);
      }
    }
  }
  EXPECT_GT(n_with, 0);
  EXPECT_GT(n_without, 0);
}

}  // namespace
