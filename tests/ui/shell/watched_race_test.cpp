// "Watch a race": captions of a recorded race, and the replay that shows them.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/drawn_window.h"
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
  ASSERT_EQ(before.size(), 5u);
  ASSERT_EQ(after.size(), 5u);
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

TEST(Tour, each_step_ends_when_it_is_done) {
  DrawnWindow window;
  window.catalog.race_recording = DECOSCOPE_SOURCE_DIR "/assets/recordings/first_race.pdrun";
  Shell& shell = window.shell;
  shell.start_tour();
  ASSERT_TRUE(waiting::until([&] { return !shell.reads(); }, [&] { window.gui.frame(shell); }));
  EXPECT_THAT(window.said(), HasSubstr("1 of 4. Click a token"));
  const engine::RunId run = shell.selection().run;
  ASSERT_GT(shell.session().shown().timeline.run(run)->totals.n_proposed, 0);
  shell.selection().locked = {run, 3, -1, -1};
  EXPECT_THAT(window.said(), HasSubstr("2 of 4. Press the right arrow"));
  shell.perform(Action::NextStep);
  EXPECT_THAT(window.said(), HasSubstr("3 of 4. Press Space"));
  shell.perform(Action::ToStart);
  EXPECT_THAT(window.said(), HasSubstr("3 of 4."));
  shell.perform(Action::PlayView);
  EXPECT_THAT(window.said(), HasSubstr("4 of 4. Drag over the Timeline"));
  shell.perform(Action::RangeIn);
  shell.perform(Action::ToEnd);
  window.said();
  shell.perform(Action::RangeOut);
  const std::string end = window.said();
  EXPECT_THAT(end, AllOf(HasSubstr("That was the tour."), Not(HasSubstr("4 of 4"))));
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
  EXPECT_THAT(window.said(), HasSubstr("1 of 4. Click a token"));
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
