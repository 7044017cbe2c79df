// "Watch a race": captions of a recorded race, and the replay that shows them. The tour of the screen Live.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/replay.h"
#include "tests/ui/support/waiting.h"
#include "ui/prepare/captions.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/layout.h"

namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace ui;

struct Race {
  engine::Timeline timeline;
  std::vector<RunTimes> times;
  std::vector<CaptionLane> lanes;

  explicit Race(const std::vector<std::string>& decoders) {
    for (const engine::Event& event : streams::race(decoders)) timeline.apply(event);
    times.resize(timeline.runs().size());
    for (std::size_t i = 0; i < times.size(); ++i) {
      extend(times[i], timeline.runs()[i]);
      lanes.push_back({&timeline.runs()[i], &times[i], decoders[i]});
    }
  }
  std::vector<std::string> texts(double least_gap) const {
    std::vector<std::string> all;
    for (const Caption& one : captions_of(timeline, lanes, least_gap)) all.push_back(one.text);
    return all;
  }
};

TEST(Captions, tell_the_notable_moments_in_order) {
  const Race race({"ar", "lookahead"});
  const auto captions = captions_of(race.timeline, race.lanes, 0);
  for (std::size_t i = 1; i < captions.size(); ++i) EXPECT_LE(captions[i - 1].at, captions[i].at);
  const std::vector<std::string> texts = race.texts(0);
  ASSERT_GE(texts.size(), 5u);
  EXPECT_THAT(texts.front(), HasSubstr("All lanes answer the same message"));
  EXPECT_THAT(texts, Contains(AllOf(HasSubstr("lookahead: the model accepts"), HasSubstr("pool"))));
  EXPECT_THAT(texts, Contains(HasSubstr("lookahead: a proposal is rejected")));
  EXPECT_THAT(texts, Contains(AllOf(HasSubstr("lookahead is done"), HasSubstr("times as fast"))));
  EXPECT_THAT(texts, Contains(AllOf(HasSubstr("ar is done: 1.00 tokens a step"),
                                    Not(HasSubstr("times as fast")))));
  EXPECT_EQ(texts.back(), "All texts are the same, token for token.");
}

TEST(Captions, of_moments_too_near_to_each_other_the_important_ones_stay) {
  const Race race({"ar", "lookahead", "jacobi"});
  const double end = race.times.front().end_compute(), gap = end / 6;
  const auto captions = captions_of(race.timeline, race.lanes, gap);
  EXPECT_LT(captions.size(), captions_of(race.timeline, race.lanes, 0).size());
  for (std::size_t i = 2; i + 1 < captions.size(); ++i)
    EXPECT_GE(captions[i].at - captions[i - 1].at, gap) << captions[i].text;
  EXPECT_THAT(race.texts(gap), Contains(HasSubstr("is done")));
}

TEST(Captions, the_last_one_before_a_time_is_shown) {
  const std::vector<Caption> captions{{0, "a"}, {10, "b"}};
  EXPECT_EQ(caption_at(captions, -1), "");
  EXPECT_EQ(caption_at(captions, 0), "a");
  EXPECT_EQ(caption_at(captions, 9.9), "a");
  EXPECT_EQ(caption_at(captions, 1e9), "b");
  EXPECT_THAT(captions_of(engine::Timeline(), {}, 1), IsEmpty());
}

struct Watching : DrawnWindow {
  explicit Watching(const std::string& race = "first_race") {
    catalog.race_recording = DECOSCOPE_SOURCE_DIR "/assets/recordings/" + race + ".pdrun";
    shell.watch_race();
    EXPECT_TRUE(waiting::until([this] { return !shell.reads(); }, [this] { gui.frame(shell); }));
    for (int i = 0; i < 3; ++i) gui.frame(shell);
  }
  std::string after(double seconds) {
    for (double t = 0; t < seconds; t += 1.0 / 60) gui.frame(shell);
    return gui.said(shell);
  }
};

class WatchedRaces : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, WatchedRaces, testing::Values("first_race", "smollm2_race"));

TEST_P(WatchedRaces, play_to_their_end_with_captions) {
  Watching window(GetParam());
  const std::string begins = window.gui.said(window.shell);
  EXPECT_THAT(begins, AllOf(HasSubstr("All lanes answer the same message"),
                            HasSubstr("press any key to take over")));
  EXPECT_EQ(window.shell.playhead().mode, Playhead::Mode::Playing);
  EXPECT_THAT(window.after(14), HasSubstr("is done"));
  EXPECT_EQ(window.shell.playhead().mode, Playhead::Mode::Playing) << "17 s in all";
  EXPECT_THAT(window.after(6), HasSubstr("All texts are the same, token for token."));
  EXPECT_EQ(window.shell.playhead().mode, Playhead::Mode::Paused);
}

// The line that is being written stays in view.
TEST(WatchedRace, the_texts_scroll_with_the_playhead) {
  Watching window("smollm2_race");
  ImGui::GetIO().DisplaySize = {1280, 720};
  window.after(0.5);
  const auto scrolls = [] {
    std::vector<float> all;
    for (const ImGuiWindow* one : ImGui::GetCurrentContext()->Windows)
      if (one->WasActive && std::string(one->Name).find("/text_") != std::string::npos)
        all.push_back(one->Scroll.y);
    return all;
  };
  const std::vector<float> before = scrolls();
  window.after(11);
  const std::vector<float> after = scrolls();
  ASSERT_EQ(before.size(), 6u);
  ASSERT_EQ(after.size(), 6u);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_GT(after[i], before[i]) << i;
}

TEST(WatchedRace, captions_are_whole_in_a_small_window) {
  Watching window("smollm2_race");
  ImGui::GetIO().DisplaySize = {ui::kLeastWidth, ui::kLeastHeight};
  int n_seen = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string said = window.after(1.8);
    if (said.find(" is done: ") == std::string::npos) continue;
    ++n_seen;
    EXPECT_THAT(said, testing::ContainsRegex("is done: [0-9.]+ tokens a step(, [0-9.]+ times as "
                                             "fast as plain decoding)?\\. "));
  }
  EXPECT_GT(n_seen, 2);
  const std::string end = window.after(2);
  EXPECT_THAT(end, HasSubstr("All texts are the same, token for token."));
}

TEST(WatchedRace, plays_in_jumps_without_motion) {
  Watching window;
  window.shell.settings().motion = Motion::None;
  std::set<double> seen;
  for (int i = 0; i < 120; ++i) {
    window.gui.frame(window.shell);
    seen.insert(window.shell.playhead().at);
  }
  EXPECT_EQ(window.shell.playhead().mode, Playhead::Mode::Playing);
  EXPECT_GE(seen.size(), 3u);
  EXPECT_LE(seen.size(), 6u) << "in 2 s";
}

TEST(WatchedRace, any_key_takes_over) {
  Watching window;
  window.after(2);
  const double at = window.shell.playhead().at;
  ImGui::GetIO().AddKeyEvent(ImGuiKey_X, true);
  const std::string said = window.after(0.1);
  EXPECT_THAT(said, AllOf(HasSubstr("You have taken over"), Not(HasSubstr("press any key"))));
  EXPECT_EQ(window.shell.playhead().mode, Playhead::Mode::Paused);
  EXPECT_NEAR(window.shell.playhead().at, at, 0.05 * at + 2e7);
  EXPECT_EQ(window.shell.playhead().speed, 1);
}

TEST(Tour, plays_the_bundled_race_with_space) {
  DrawnWindow window;
  window.catalog.race_recording = DECOSCOPE_SOURCE_DIR "/assets/recordings/first_race.pdrun";
  Shell& shell = window.shell;
  shell.start_tour();
  ASSERT_TRUE(waiting::until([&] { return !shell.reads(); }, [&] { window.gui.frame(shell); }));
  EXPECT_THAT(window.said(), HasSubstr("1 of 4. Press Space. The view plays the run"));
  const engine::RunId run = shell.selection().run;
  EXPECT_GT(shell.session().shown().timeline.run(run)->totals.n_proposed, 0);
  EXPECT_EQ(shell.playhead().at, 0);
  const auto press_space = [&] {
    ImGui::GetIO().AddKeyEvent(ImGuiKey_Space, true);
    ImGui::GetIO().AddKeyEvent(ImGuiKey_Space, false);
    return window.said();
  };
  EXPECT_THAT(press_space(), HasSubstr("2 of 4. Press Space again"));
  EXPECT_EQ(shell.playhead().mode, Playhead::Mode::Playing);
  EXPECT_LE(shell.playhead().speed, 1);
  EXPECT_THAT(press_space(), HasSubstr("3 of 4. Click a token"));
  EXPECT_EQ(shell.playhead().mode, Playhead::Mode::Paused);
  EXPECT_FALSE(shell.settings().tour_done);
}

TEST(Tour, each_step_ends_when_it_is_done) {
  scripted::play("tour", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    Shell& shell = *stage.shell;
    shell.form().live.decoder = "jacobi";
    scripted::run_to_the_end(ctx, stage);
    const engine::RunRecord& run = *scripted::run_of(stage);
    RunTimes times;
    extend(times, run);
    const double end = times.end_compute();
    shell.start_tour();
    ctx->Yield(2);
    IM_CHECK_EQ(shell.tour_step(), 1);
    ctx->KeyPress(ImGuiKey_Space);
    ctx->Yield();
    IM_CHECK_EQ(shell.tour_step(), 2);
    scripted::wait_until(ctx, [&] { return shell.playhead().at > end / 2; });
    IM_CHECK_EQ(shell.tour_step(), 2);
    ctx->KeyPress(ImGuiKey_Space);
    ctx->Yield();
    IM_CHECK_EQ(shell.tour_step(), 3);
    // A token of the last step before the playhead, because the text has scrolled to it.
    std::size_t n_steps = 0;
    while (n_steps < times.steps.size() && times.steps[n_steps].compute1 <= shell.playhead().at)
      ++n_steps;
    IM_CHECK_GT(n_steps, std::size_t{0});
    IM_CHECK_LT(n_steps, times.steps.size());
    const StepSpan& step = times.steps[n_steps - 1];
    int position = -1;
    for (const engine::TokenRecord& token : run.tokens)
      if (token.step == step.step) position = token.pos;
    ctx->SetRef(ImGui::FindWindowByName("Text###live.text"));
    ctx->ItemClick(("$$" + std::to_string(position * 2) + "/cell").c_str());
    ctx->Yield();
    IM_CHECK_EQ(shell.tour_step(), 4);
    // The slice of that step: without a zoom the lanes show the whole run and 5 % after it.
    ctx->SetRef(ImGui::FindWindowByName("Timeline###live.gantt"));
    const ImRect lanes = ctx->ItemInfo("lanes").RectFull;
    const double middle = (step.compute0 + step.compute1) / 2;
    ctx->MouseMoveToPos({lanes.Min.x + static_cast<float>(middle / (1.05 * end)) * lanes.GetWidth(),
                         lanes.Min.y + 12});
    ctx->MouseClick();
    ctx->Yield();
    IM_CHECK_EQ(shell.tour_step(), 0);
    IM_CHECK(shell.settings().tour_done);
    IM_CHECK_EQ(shell.message().find("That was the tour."), std::size_t{0});
  });
}

TEST(Tour, is_offered_until_it_was_done) {
  scripted::play("end_tour", [](ImGuiTestContext* ctx, scripted::Stage& stage) {
    scripted::run_to_the_end(ctx, stage);
    stage.shell->start_tour();
    ctx->Yield(2);
    IM_CHECK_EQ(stage.shell->tour_step(), 1);
    ctx->ItemClick("//##tour/###end_tour");
    ctx->Yield();
    IM_CHECK_EQ(stage.shell->tour_step(), 0);
    IM_CHECK(stage.shell->settings().tour_done);
  });
  DrawnWindow window;
  window.shell.show(Screen::Welcome);
  EXPECT_THAT(window.said(), HasSubstr("Take a tour of the window"));
  window.shell.settings().tour_done = true;
  EXPECT_THAT(window.said(), Not(HasSubstr("Take a tour of the window")));
  window.shell.perform(Action::Help);
  EXPECT_THAT(window.said(), HasSubstr("Tour of the screen Live"));
}

TEST(Tour, is_in_the_palette) {
  DrawnWindow window;
  window.shell.take(streams::one_run("lookahead"));
  window.said();
  window.shell.perform(Action::Palette);
  window.said();
  ImGuiIO& io = ImGui::GetIO();
  io.AddInputCharactersUTF8("tour");
  window.said();
  io.AddKeyEvent(ImGuiKey_Enter, true);
  window.gui.frame(window.shell);
  io.AddKeyEvent(ImGuiKey_Enter, false);
  EXPECT_THAT(window.said(), HasSubstr("1 of 4. Press Space."));
  EXPECT_EQ(window.shell.screen(), Screen::Live);
}

TEST(Tour, ends_on_another_screen) {
  DrawnWindow window;
  window.shell.take(streams::one_run("lookahead"));
  window.shell.start_tour();
  EXPECT_THAT(window.said(), HasSubstr("1 of 4."));
  window.shell.show(Screen::Compare);
  EXPECT_THAT(window.said(), Not(HasSubstr("1 of 4.")));
  window.shell.show(Screen::Live);
  EXPECT_THAT(window.said(), Not(HasSubstr("1 of 4.")));
}

}  // namespace
