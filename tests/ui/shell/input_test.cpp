// Keys of the window: chords between slow frames, keys while a sheet is open, pausing before a run, copying, centring.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "tests/support/files.h"
#include "tests/ui/support/drawn_window.h"
#include "ui/files/files.h"
#include "ui/files/setup_form.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/status.h"
#include "ui/shell/layout.h"
#include "ui/widgets/draw.h"

namespace {

using testing::HasSubstr;
using testing::Not;
using namespace ui;

struct Stage : DrawnWindow {
  explicit Stage(const std::vector<engine::Event>& events = streams::one_run("lookahead")) {
    shell.take(events);
    shell.show(Screen::Live);
    said();
  }
  /// Sends press and release of a chord without a frame between them.
  void tap(int chord) {
    ImGuiIO& io = ImGui::GetIO();
    const auto key = static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_);
    const ImGuiKey mods[] = {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt};
    for (const ImGuiKey mod : mods)
      if (chord & mod) io.AddKeyEvent(mod, true);
    io.AddKeyEvent(key, true);
    io.AddKeyEvent(key, false);
    for (const ImGuiKey mod : mods)
      if (chord & mod) io.AddKeyEvent(mod, false);
  }
  void press(int chord) {
    tap(chord);
    said();
  }
  bool shows(const char* window) {
    const ImGuiWindow* found = ImGui::FindWindowByName(window);
    return found && found->WasActive;
  }
};

TEST(Input, chord_between_two_frames_is_not_lost) {
  Stage stage;
  stage.tap(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P);
  stage.said();
  EXPECT_TRUE(stage.shows("##palette"));
}

TEST(Input, two_chords_between_two_frames_both_act) {
  Stage stage;
  const int scale = stage.shell.settings().scale_percent;
  stage.tap(ImGuiMod_Ctrl | ImGuiKey_Equal);
  stage.tap(ImGuiMod_Ctrl | ImGuiKey_Equal);
  for (int i = 0; i < 3; ++i) stage.said();
  EXPECT_EQ(stage.shell.settings().scale_percent, scale + 20);
}

TEST(Input, escape_closes_a_sheet_at_once) {
  for (const int chord : {ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_P, int{ImGuiKey_Slash},
                          ImGuiMod_Ctrl | ImGuiKey_O, ImGuiMod_Ctrl | ImGuiKey_E}) {
    Stage stage;
    stage.press(chord);
    EXPECT_TRUE(ImGui::GetIO().WantTextInput);
    stage.shell.selection().locked = {1, 3, -1, -1};
    stage.press(ImGuiKey_Escape);
    for (const char* sheet : {"##palette", "##find", "##open", "##export"})
      EXPECT_FALSE(stage.shows(sheet)) << sheet;
    EXPECT_TRUE(stage.shell.selection().locked.valid()) << "only the sheet closes";
  }
}

TEST(Input, keys_do_not_act_behind_a_sheet) {
  Stage stage;
  stage.press(ImGuiMod_Shift | ImGuiKey_Slash);
  ASSERT_TRUE(stage.shows("##help"));
  const bool marks = stage.shell.settings().marks;
  stage.press(ImGuiKey_T);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_B);
  EXPECT_EQ(stage.shell.settings().marks, marks);
  EXPECT_TRUE(stage.shell.notes().bookmarks.empty());
  stage.press(ImGuiMod_Shift | ImGuiKey_Slash);
  EXPECT_FALSE(stage.shows("##help")) << "the same key closes it";
  stage.press(ImGuiKey_T);
  EXPECT_NE(stage.shell.settings().marks, marks);
}

engine::StartRun next_run(Stage& stage) {
  stage.shell.perform(Action::Run);
  while (auto command = stage.commands.try_take())
    if (const auto* start = std::get_if<engine::StartRun>(&*command)) return *start;
  return {};
}

TEST(Input, pausing_before_a_run_starts_it_paused) {
  Stage stage;
  stage.press(ImGuiMod_Shift | ImGuiKey_Space);
  EXPECT_FALSE(stage.commands.try_take().has_value()) << "no run can be paused";
  EXPECT_THAT(stage.said(), HasSubstr("the next run starts paused"));
  EXPECT_TRUE(next_run(stage).start_held);
  // While its model is loading, the key changes how the requested run starts.
  stage.shell.perform(Action::HoldEngine);
  const auto command = stage.commands.try_take();
  ASSERT_TRUE(command && std::holds_alternative<engine::Hold>(*command));
  EXPECT_FALSE(std::get<engine::Hold>(*command).held);
}

TEST(Input, copied_answer_keeps_line_feeds_and_is_confirmed) {
  Stage stage;
  stage.press(ImGuiMod_Ctrl | ImGuiKey_C);
  const std::string text = ImGui::GetClipboardText();
  EXPECT_THAT(text, HasSubstr("\n"));
  EXPECT_THAT(text, Not(HasSubstr("\xE2\x90\x8A")));
  const std::size_t n = stage.shell.session().shown().timeline.run(1)->tokens.size();
  EXPECT_EQ(stage.shell.message(), "Copied " + std::to_string(n) + " tokens.");
}

// Returns how much of the pixels [x0, x1] in the row y a window covers with a colour, from the first to the last such pixel.
float covered(const ImGuiWindow& window, ImU32 ink, float y, float x0, float x1) {
  constexpr ImU32 kRgb = ~IM_COL32_A_MASK;  // the edges of a line are transparent
  float first = x1, last = x0;
  const ImDrawList* list = window.DrawList;
  for (const ImDrawCmd& command : list->CmdBuffer) {
    for (unsigned i = 0; i + 3 <= command.ElemCount; i += 3) {
      const ImDrawVert* corners[3];
      for (unsigned k = 0; k < 3; ++k)
        corners[k] = &list->VtxBuffer[static_cast<int>(
            command.VtxOffset + list->IdxBuffer[static_cast<int>(command.IdxOffset + i + k)])];
      if ((corners[0]->col & kRgb) != (ink & kRgb)) continue;
      // The sides of the triangle that cross the row.
      for (unsigned k = 0; k < 3; ++k) {
        const ImVec2 a = corners[k]->pos, b = corners[(k + 1) % 3]->pos;
        if ((a.y < y) == (b.y < y)) continue;
        const float x = a.x + (b.x - a.x) * (y - a.y) / (b.y - a.y);
        if (x < x0 || x > x1) continue;
        first = std::min(first, x), last = std::max(last, x);
      }
    }
  }
  return std::max(0.0f, last - first);
}

TEST(Input, focused_panel_and_item_have_a_ring_of_2_px) {
  constexpr float kRing = 2;  // px; smoothing adds up to a pixel on each side
  for (const Screen screen : {Screen::Live, Screen::Compare}) {
    SCOPED_TRACE(screen_name(screen));
    Stage stage(streams::race({"ar", "lookahead"}));
    stage.shell.show(screen);
    stage.said();
    // F6 reaches a panel, whose ring is at its edges.
    stage.press(ImGuiKey_F6);
    int n_panels = 0;
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
      if (!window->WasActive || window->Hidden || !std::strstr(window->Name, "###")) continue;
      const float y = std::floor(window->Pos.y + window->Size.y / 2) + 0.3f;
      const float wide =
          covered(*window, colour(theme().accent), y, window->Pos.x - 3, window->Pos.x + 6);
      n_panels += wide >= kRing && wide <= kRing + 2.5f;
    }
    EXPECT_EQ(n_panels, 1);
    // Tab reaches the items of a panel.
    ImGui::SetWindowFocus(window_name(screen, "setup", "").c_str());
    stage.said();
    int n_items = 0;
    for (int i = 0; i < 4; ++i) {
      stage.press(ImGuiKey_Tab);
      const ImGuiContext& g = *ImGui::GetCurrentContext();
      if (!g.NavWindow || g.NavId == 0) continue;
      const ImRect item =
          ImGui::WindowRectRelToAbs(g.NavWindow, g.NavWindow->NavRectRel[g.NavLayer]);
      const float y = std::floor(item.GetCenter().y) + 0.3f;
      n_items += covered(*g.NavWindow, ImGui::GetColorU32(ImGuiCol_NavCursor), y, item.Min.x - 8,
                         item.Min.x + 3) >= kRing;
    }
    EXPECT_GE(n_items, 2) << "a field with several lines has a text cursor instead";
  }
}

TEST(Input, F_centres_first_and_zooms_second) {
  Stage stage;
  TimeRange& range = stage.shell.state<TimelineView>().range;
  stage.shell.selection().locked = {1, 5, -1, -1};
  ASSERT_FALSE(range.zoomed());
  stage.shell.perform(Action::FitSelection);
  const double wide = range.t1 - range.t0;
  EXPECT_GT(wide, 0);
  stage.shell.perform(Action::FitSelection);
  EXPECT_LT(range.t1 - range.t0, wide / 2);
  // Everything is visible again: the same two presses have the same effect.
  stage.shell.perform(Action::FitAll);
  stage.shell.perform(Action::FitSelection);
  EXPECT_DOUBLE_EQ(range.t1 - range.t0, wide);
}

TEST(Input, statistics_of_a_range_are_below_the_lanes) {
  Stage stage;
  TimelineView& view = stage.shell.state<TimelineView>();
  view.range.range0 = 1e6;
  view.range.range1 = 5e6;
  stage.said();
  EXPECT_GT(view.rows_end, 0);
  EXPECT_GE(view.range_words_top, view.rows_end);
}

TEST(Status, stopped_run_is_not_called_complete) {
  std::vector<engine::Event> events = streams::race({"ar", "jacobi"});
  for (engine::Event& event : events)
    if (auto* finished = std::get_if<engine::RunFinished>(&event))
      finished->stop_reason = "stopped";
  Stage stage(events);
  EXPECT_THAT(stage.said(), HasSubstr("stopped after 96 tokens"));
  stage.shell.show(Screen::Compare);
  EXPECT_THAT(stage.said(), HasSubstr("2 stopped"));
}

TEST(Setup, refused_prompt_has_its_error_at_the_prompt) {
  Stage stage;
  const std::string why = "prompt: 150000 tokens, the context of demo holds 1024";
  stage.shell.take({engine::RunFailed{.run = 0, .code = 2, .message = why}});
  stage.shell.perform(Action::Welcome);
  stage.shell.show(Screen::Live);
  EXPECT_EQ(stage.shell.form().prompt_error, why);
  EXPECT_THAT(stage.said(), HasSubstr(why));
  next_run(stage);
  EXPECT_EQ(stage.shell.form().prompt_error, "");
}

TEST(Setup, path_of_a_model_with_an_adapter_is_split) {
  const engine::test::Folder folder;
  std::filesystem::create_directories(folder / "lora");
  const std::string path = "/models/a+b+" + (folder / "lora");
  EXPECT_EQ(base_and_adapter(path).second, "");
  engine::test::write_file(folder / "lora/adapter_config.json", "{}");
  EXPECT_EQ(base_and_adapter(path).first, "/models/a+b");
  EXPECT_EQ(base_and_adapter(path).second, folder / "lora");
  EXPECT_EQ(base_and_adapter("/models/a").first, "/models/a");
}

TEST(Setup, dropped_adapter_is_added_to_the_chosen_model) {
  const engine::test::Folder folder;
  std::filesystem::create_directories(folder / "base");
  engine::test::write_file(folder / "base/config.json", "{}");
  std::filesystem::create_directories(folder / "lora");
  engine::test::write_file(folder / "lora/adapter_config.json", "{}");
  Stage stage;
  stage.catalog.add_model = [&](const std::string& path) {
    stage.catalog.models.push_back({.name = path, .path = path});
    return path;
  };
  stage.shell.open(folder / "base");
  stage.shell.open(folder / "lora");
  EXPECT_EQ(stage.shell.form().model, folder / "base" + "+" + (folder / "lora"));
}

}  // namespace
