// The window at every size: panels give up their places before the text of the answer does, and no label is cut or covered.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>

#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/replay.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/setup/setup_rows.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"

namespace {

using testing::IsEmpty;
using ui::Screen;

struct Size {
  float width, height;
  int scale;  // percent
};

std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.width << "x" << size.height << " at " << size.scale << " %";
}

constexpr Size kSizes[] = {{1280, 720, 100}, {1280, 720, 150}, {2560, 1440, 200}, {1366, 768, 125},
                           {640, 400, 100},  {640, 400, 150},  {1600, 1000, 100}, {1120, 700, 100}};

// The events of a run or a race, whose model has a long name.
std::vector<engine::Event> with_long_name(std::vector<engine::Event> events) {
  for (engine::Event& event : events)
    if (auto* model = std::get_if<engine::ModelLoaded>(&event))
      model->name = "A-Language-Model-135M-Instruct.Q4_1";
  return events;
}

// A window with a race of five lanes or one long run.
struct Window : DrawnWindow {
  explicit Window(const Size& size, Screen screen = Screen::Compare) {
    ImGui::GetIO().DisplaySize = {size.width, size.height};
    shell.settings().scale_percent = size.scale;
    shell.take(with_long_name(
        screen == Screen::Live
            ? streams::one_run("lookahead", 300)
            : streams::race({"ar", "jacobi", "lookahead", "prompt-lookup", "suffix"}, 300)));
    shell.show(screen);
    settle();
  }
  void settle() {
    for (int i = 0; i < 6; ++i) gui.frame(shell);
  }
};

// The windows of the last frame that are not inside another one.
std::vector<ImGuiWindow*> panels_in_front() {
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

void expect_no_overlap() {
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

// True for a bar, and for a lane without its answer that is whole on the screen.
bool is_head(const std::string& name) {
  if (name == "##top" || name == "##status") return true;
  if (name.find("/lane") == std::string::npos || name.find("/text_") != std::string::npos)
    return false;
  const ImGuiWindow* lane = ImGui::FindWindowByName(name.c_str());
  return lane && lane->OuterRectClipped.GetWidth() > lane->Rect().GetWidth() - 1;
}

// True for a panel that scrolls only up and down.
bool is_setup(const std::string& name) {
  return name.starts_with("Setup###");
}

void expect_whole_labels() {
  const std::vector<glyphs::Glyph> all = glyphs::drawn();
  EXPECT_GT(all.size(), 100u);
  std::set<std::string> cut;
  int n_heads = 0;
  for (const glyphs::Glyph& glyph : all) {
    if (is_setup(glyph.window) && is_cut_sideways(glyph)) cut.insert(glyph.window);
    if (!is_head(glyph.window)) continue;
    ++n_heads;
    if (is_cut_sideways(glyph) || is_cut_in_height(glyph)) cut.insert(glyph.window);
  }
  EXPECT_GT(n_heads, 20);
  EXPECT_THAT(cut, IsEmpty());
  EXPECT_THAT(glyphs::covering(all), IsEmpty());
}

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

// Returns the dock nodes of the screen's panels.
std::set<ImGuiID> places(Screen screen) {
  std::set<ImGuiID> ids;
  for (const char* id : ui::panels_of(screen))
    if (const ImGuiWindow* window =
            ImGui::FindWindowByName(ui::window_name(screen, id, "").c_str()))
      ids.insert(window->DockId);
  return ids;
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

TEST(Room, a_narrow_bar_keeps_its_buttons_in_lists) {
  Window window({640, 400, 100});
  const std::string said = window.said();
  EXPECT_THAT(said, testing::HasSubstr("Compare..."));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("Export")));
}

TEST(Room, words_of_the_bar_end_before_its_buttons) {
  for (const int scale : {100, 150}) {
    scripted::play(
        "bar",
        [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
          stage.shell->take(streams::race({"ar", "jacobi"}));
          ctx->Yield(4);
          const char* button = scale == 100 ? "//##top/Open" : "//##top/###more";
          const ImRect rect = ctx->ItemInfo(button).RectFull;
          IM_CHECK_GT(rect.Min.x, 600.0f);
          // The name of the button begins after its padding.
          for (const glyphs::Glyph& glyph : glyphs::drawn())
            if (glyph.window == "##top")
              IM_CHECK(glyph.seen.Max.x < rect.Min.x || glyph.seen.Min.x > rect.Min.x + ui::px(8));
        },
        {.width = 1280, .height = 720, .ui_scale = scale});
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

}  // namespace
