// Sets of races: repeats and several prompts, on the engine's thread.
#include <set>

#include "tests/support/engine_thread.h"

namespace engine {
namespace {

using test::EngineThread;

std::vector<TokenId> tokens_of(const RunRecord& run) {
  std::vector<TokenId> tokens;
  for (const TokenRecord& token : run.tokens) tokens.push_back(token.id);
  return tokens;
}

class RaceSets : public EngineThread {
 protected:
  static StartRun repeated(std::vector<std::string> decoders, int n) {
    StartRun start = race(std::move(decoders), 12);
    start.n_repeats = n;
    return start;
  }
  static SetPrompt sum(const std::string& id, int first, int second) {
    return {.id = id,
            .text = "Question:\nAnna has " + std::to_string(first) + " stickers. Anna finds " +
                    std::to_string(second) + " more. How many?\nAnswer:\n",
            .task = id + "-task"};
  }
};

TEST_F(RaceSets, a_race_is_repeated_with_equal_tokens) {
  commands.push(repeated({"ar", "lookahead"}, 3));
  ASSERT_TRUE(until([&] { return n_over() == 6 && count<Agreement>() == 3; }));
  EXPECT_EQ(count<Held>(), 1) << "of the first race";
  for (const RunRecord& run : timeline.runs()) {
    const auto index = static_cast<int>(run.id()) - 1;
    const PlaceInSet& place = run.started.place;
    EXPECT_EQ(place.set, 1u);
    EXPECT_EQ(place.repeat, index / 2);
    EXPECT_EQ(place.n_repeats, 3);
    EXPECT_EQ(place.n_prompts, 1);
    EXPECT_EQ(run.started.race, static_cast<std::uint32_t>(index / 2 + 1));
    EXPECT_EQ(run.started.lane, index % 2);
    EXPECT_EQ(tokens_of(run), tokens_of(timeline.runs()[0])) << run.id();
    EXPECT_EQ(timeline.baseline_of(run)->started.race, run.started.race);
  }
  ASSERT_GE(timeline.samples().size(), 3u) << "one for each race at least";
  EXPECT_GE(timeline.samples().back().load_average, 0);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
}

TEST_F(RaceSets, prompts_are_decoded_in_turn_and_unreadable_ones_skipped) {
  StartRun start = race({"ar", "jacobi"}, 12);
  start.n_repeats = 2;
  start.prompts = {sum("a", 11, 33), sum("long", 2, 5), sum("b", 4, 9)};
  for (int i = 0; i < 14; i++) start.prompts[1].text += start.prompts[1].text;
  start.prompts[2].seed = 77;
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 8 && count<Agreement>() == 4; }));
  std::vector<std::string> order;
  for (const RunRecord& run : timeline.runs()) {
    EXPECT_FALSE(run.failed);
    order.push_back(run.started.prompt_id + std::to_string(run.started.place.repeat));
    EXPECT_EQ(run.started.place.task, run.started.prompt_id + "-task");
    EXPECT_EQ(run.started.place.n_prompts, 3);
    EXPECT_EQ(run.started.place.prompt, run.started.prompt_id == "a" ? 0 : 2);
    EXPECT_EQ(run.started.seed, run.started.prompt_id == "a" ? 1u : 77u);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"a0", "a0", "a1", "a1", "b0", "b0", "b1", "b1"}));
  ASSERT_EQ(count<Notice>(), 1);
  EXPECT_TRUE(timeline.notices()[0].text.starts_with("Prompt long is skipped: "))
      << timeline.notices()[0].text;
  EXPECT_EQ(count<RunFailed>(), 0);
}

TEST_F(RaceSets, a_set_without_a_readable_prompt_fails_once) {
  StartRun start = race({"ar"}, 12);
  start.prompts = {sum("a", 11, 33), sum("b", 2, 5)};
  for (SetPrompt& prompt : start.prompts)
    for (int i = 0; i < 14; i++) prompt.text += prompt.text;
  commands.push(start);
  ASSERT_TRUE(until([&] { return count<RunFailed>() == 1; }));
  EXPECT_TRUE(timeline.runs().empty());
  commands.push(race({"ar"}));  // the engine still works
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  EXPECT_EQ(timeline.runs()[0].started.place.set, 0u);
}

TEST_F(RaceSets, stop_ends_the_set_and_keeps_the_races_before) {
  sink.heard = [this](const Event& event) {
    const auto* ended = std::get_if<StepEnded>(&event);
    if (ended && ended->run == 3 && ended->step == 2) commands.push(StopRun{});
  };
  commands.push(repeated({"ar"}, 50));
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  EXPECT_EQ(timeline.runs()[1].finished->stop_reason, "length");
  EXPECT_EQ(timeline.runs()[2].finished->stop_reason, "stopped");
  EXPECT_EQ(timeline.runs()[2].finished->n_steps, 3) << "the step in progress is completed";
  EXPECT_TRUE(answers_held());
  EXPECT_EQ(timeline.runs().size(), 3u);
}

TEST_F(RaceSets, a_new_run_replaces_the_set) {
  sink.heard = [this](const Event& event) {
    const auto* ended = std::get_if<StepEnded>(&event);
    if (ended && ended->run == 2 && ended->step == 1) commands.push(race({"jacobi"}));
  };
  commands.push(repeated({"ar"}, 50));
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  EXPECT_TRUE(answers_held());
  ASSERT_EQ(timeline.runs().size(), 3u);
  EXPECT_EQ(timeline.runs()[2].started.decoder, "jacobi");
}

TEST_F(RaceSets, a_pause_holds_the_next_race_too) {
  sink.heard = [this](const Event& event) {
    const auto* ended = std::get_if<StepEnded>(&event);
    if (ended && ended->run == 1 && ended->step == 1) commands.push(Hold{true});
  };
  commands.push(repeated({"ar"}, 2));
  ASSERT_TRUE(until([&] { return timeline.held(); }));
  for (int i = 0; i < 12; i++) commands.push(StepOnce{});
  ASSERT_TRUE(until([&] { return timeline.runs().size() == 2; })) << "steps lead to the next race";
  EXPECT_TRUE(answers_held());
  EXPECT_FALSE(timeline.runs()[1].over());
  commands.push(Hold{false});
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
}

TEST_F(RaceSets, a_repeat_does_not_copy_from_what_it_repeats) {
  StartRun start = race({"suffix"});
  start.lanes[0].options = {{"n_tokens", "12"}};
  start.n_repeats = 2;
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  start.n_repeats = 1;
  commands.push(start);
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  EXPECT_EQ(timeline.runs()[0].steps.size(), timeline.runs()[1].steps.size());
  EXPECT_LT(timeline.runs()[2].steps.size(), timeline.runs()[1].steps.size());
}

}  // namespace
}  // namespace engine
