// The top bar at every size: the state and the model are shortened by precedence, and no word reaches the buttons.
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <imgui_te_context.h>

#include "tests/ui/support/glyphs.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/sized_window.h"
#include "ui/prepare/status.h"
#include "ui/shell/layout.h"
#include "ui/widgets/draw.h"

namespace {

using testing::HasSubstr;
using testing::Not;
using ui::Screen;

// Returns the text of the status bar, without blanks.
std::string status_bar() {
  return glyphs::text_in(ImGui::FindWindowByName("##status")->Rect());
}

// Returns the words between the buttons of the top bar: name of the run, state, agreement.
std::string state_in_bar(SizedWindow& window) {
  static const std::regex kState(R"(\[ Pause \]( \[ Step \])?( \[ Stop \])? ([^\[]*)\[)");
  const std::string said = window.said();
  std::smatch found;
  return std::regex_search(said, found, kState) ? found[3].str() : "no state in: " + said;
}

TEST(Bar, state_is_whole_at_every_size) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    SizedWindow live(size, Screen::Live);
    EXPECT_THAT(state_in_bar(live), HasSubstr("max tokens"));
  }
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size);
    SizedWindow race(size, Screen::Compare);
    const std::string state = state_in_bar(race);
    EXPECT_THAT(state, HasSubstr("5 of 5 done"));
    EXPECT_THAT(state, Not(HasSubstr("...")));
  }
}

TEST(Bar, state_precedes_the_name_of_the_model) {
  {
    SizedWindow live({1280, 720, 100}, Screen::Live);
    const std::string state = state_in_bar(live);
    EXPECT_THAT(state, testing::AllOf(testing::StartsWith("lookahead "), HasSubstr("max tokens")));
    EXPECT_THAT(state, Not(HasSubstr("...")));
  }
  SizedWindow wide({2560, 1440, 100}, Screen::Compare);
  EXPECT_THAT(state_in_bar(wide), HasSubstr("of compute per lane"));
}

TEST(Bar, a_narrow_bar_keeps_its_buttons_in_lists) {
  SizedWindow window({640, 400, 100});
  const std::string said = window.said();
  EXPECT_THAT(said, HasSubstr("Compare..."));
  EXPECT_THAT(said, Not(HasSubstr("Export")));
}

TEST(Bar, words_of_the_bar_end_before_its_buttons) {
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

TEST(Bar, one_of_the_bars_has_name_and_size_of_the_model) {
  const std::string name = "A-Language-Model-135M-Instruct.Q4_1";
  for (const Size& size : kSizes) {
    for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Lab}) {
      SCOPED_TRACE(testing::Message() << size << ", " << ui::screen_name(screen));
      SizedWindow window(size, screen);
      EXPECT_THAT(window.said(), testing::AllOf(HasSubstr(name), HasSubstr("88.0 M at 4x2")));
    }
  }
  // A wide top bar has the name, so the status bar does not repeat it; a narrow one has none.
  EXPECT_THAT(SizedWindow({1600, 1000, 100}, Screen::Lab).said(), Not(HasSubstr(name + ", bf16")));
  EXPECT_THAT(SizedWindow({1280, 720, 150}, Screen::Lab).said(), HasSubstr(name + ", bf16"));
}

TEST(Bar, status_bar_omits_facts_instead_of_cutting_them) {
  for (const Size& size : kSizes) {
    for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Lab}) {
      for (const bool captions : {false, true}) {
        SCOPED_TRACE(testing::Message() << size << ", " << ui::screen_name(screen));
        SizedWindow window(size, screen);
        window.shell.caption_pictures(captions);
        window.settle();
        EXPECT_GT(status_bar().size(), 4u);
        EXPECT_THAT(status_bar(), Not(HasSubstr("..")));
      }
    }
  }
  SizedWindow wide({2560, 1440, 100}, Screen::Live);
  wide.shell.caption_pictures(true);
  wide.settle();
  EXPECT_THAT(status_bar(), HasSubstr("derivedfrommeasuredfigures"));
}

TEST(Bar, the_least_important_facts_are_omitted_first) {
  const std::vector<std::string> forms = ui::bar_forms(
      {.source = "race.pdrun", .model = "demo-target, f32", .n_events = 20, .scale_percent = 150});
  EXPECT_THAT(forms, testing::ElementsAre("Recording race.pdrun \xC2\xB7 demo-target, f32 "
                                          "\xC2\xB7 20 events \xC2\xB7 scale 150 %",
                                          "Recording race.pdrun \xC2\xB7 demo-target, f32 "
                                          "\xC2\xB7 20 events",
                                          "Recording race.pdrun \xC2\xB7 demo-target, f32",
                                          "demo-target, f32"));
}

TEST(Bar, numbers_of_a_text_change_ten_times_a_second) {
  ui::SteadyWords words;
  const auto shown = [&](const char* text, double now, bool changes = true) {
    return words.show({text}, now, changes).front();
  };
  EXPECT_EQ(shown("step 1, 0.5 s", 1.00), "step 1, 0.5 s");
  EXPECT_EQ(shown("step 2, 0.6 s", 1.05), "step 1, 0.5 s");
  EXPECT_EQ(shown("step 3, 0.7 s", 1.11), "step 3, 0.7 s");
  EXPECT_EQ(shown("paused", 1.12), "paused") << "other words show at once";
  EXPECT_EQ(shown("step 4, 0.8 s", 1.13), "step 4, 0.8 s");
  EXPECT_EQ(shown("step 5, 0.9 s", 1.14, false), "step 5, 0.9 s") << "no further change follows";
}

TEST(Bar, events_of_a_run_are_counted_ten_times_a_second) {
  DrawnWindow window;
  std::vector<engine::Event> events = streams::one_run("jacobi");
  constexpr std::size_t kFrames = 60;  // one second
  ASSERT_GT(events.size(), kFrames + 10);
  window.shell.show(Screen::Live);
  window.shell.take({events.begin(), events.begin() + 10});
  window.said();
  static const std::regex kCount(R"(([0-9,]+) events recorded)");
  int n_changes = 0;
  std::string last;
  for (std::size_t i = 0; i < kFrames; ++i) {
    window.shell.take({events[10 + i]});
    const std::string said = window.gui.said(window.shell);
    std::smatch found;
    ASSERT_TRUE(std::regex_search(said, found, kCount)) << said;
    n_changes += found[1].str() != last;
    last = found[1].str();
  }
  EXPECT_LE(n_changes, 11);
  EXPECT_GE(n_changes, 8);
}

}  // namespace
