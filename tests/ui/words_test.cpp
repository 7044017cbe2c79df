// What the window says in words: every mark is explained, nothing is cut, nothing untrue is said.
#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/base/text.h"
#include "headless.h"
#include "prepared.h"
#include "streams.h"
#include "tests/engine/event/files.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/status.h"
#include "ui/prepare/tokens/text_cells.h"
#include "waiting.h"

namespace {

using namespace ui;
using engine::test::Folder;
using headless::Headless;
using testing::HasSubstr;
using testing::Not;

struct Stage {
  Headless gui;
  engine::CommandQueue commands;
  Catalog catalog = streams::catalog();
  Shell shell{catalog, commands, ""};

  void open(const std::string& path) {
    shell.open(path);
    ASSERT_TRUE(waiting::until([&] { return !shell.reads(); }, [&] { gui.frame(shell); }));
    settle();
  }
  void settle() {
    for (int i = 0; i < 3; ++i) gui.frame(shell);
  }
  std::string said() { return gui.said(shell); }
};

std::string recorded(const Folder& folder, const std::vector<engine::Event>& events) {
  engine::Recorder recorder(folder / "race.pdrun");
  for (const engine::Event& event : events) recorder.push(event);
  recorder.close();
  return recorder.path();
}

TEST(Legend, explains_every_look_of_a_cell) {
  for (int i = 0; i < kMeans; ++i) {
    const auto mean = static_cast<Mean>(i);
    const bool told = std::ranges::any_of(cell_marks(), [mean](const MarkNote& note) {
      return mean == Mean::Diverged ? note.diverged
                                    : note.mean == mean && note.origin == Mean::Prefix;
    });
    EXPECT_TRUE(told) << look(mean).name;
  }
}

TEST(Legend, explains_the_corner_of_whatever_may_have_proposed_a_token) {
  using Kind = engine::RowTag::Kind;
  for (const Kind kind : {Kind::Window, Kind::Guess, Kind::Draft, Kind::Block, Kind::Probe}) {
    const auto at = std::ranges::find(cell_marks(), mean_of(kind), &MarkNote::origin);
    ASSERT_NE(at, cell_marks().end()) << look(mean_of(kind)).name;
    EXPECT_THAT(at->words, HasSubstr("corner"));
  }
}

TEST(Legend, explains_signs_counts_rings_and_letters) {
  std::set<std::string> texts, marks;
  bool lit = false, locked = false;
  for (const MarkNote& note : cell_marks()) {
    texts.insert(note.text);
    if (note.mark) marks.insert(note.mark);
    lit = lit || (note.lit && !note.locked);
    locked = locked || note.locked;
  }
  EXPECT_TRUE(texts.contains("_"));
  EXPECT_TRUE(texts.contains("\xC2\xB6"));
  EXPECT_TRUE(marks.contains("?3"));
  EXPECT_TRUE(lit && locked);
  for (const Truth truth : {Truth::Derived, Truth::Hindsight, Truth::Simulated})
    EXPECT_NE(std::ranges::find(letter_marks(), truth, &MarkNote::truth), letter_marks().end());
}

TEST(Legend, a_row_of_it_tells_the_bonus_the_corners_and_the_letters) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"}));
  stage.shell.show(Screen::Compare);
  stage.settle();
  EXPECT_THAT(stage.said(), HasSubstr("d derived \xC2\xB7 h in hindsight"));
  // Each sample has words beside it, and is drawn.
  for (const auto& notes :
       {cell_marks(), letter_marks(), trajectory_marks(), time_line_marks(), pool_marks(),
        tree_marks(), mask_marks(), distributions_marks(), thought_marks(), schedule_marks()}) {
    for (const MarkNote& note : notes) {
      int n_corners = 0;
      const std::string text = stage.gui.said([&] {
        ImGui::SetNextWindowSize({900, 200});
        ImGui::Begin("notes");
        const int before = ImGui::GetWindowDrawList()->VtxBuffer.Size;
        draw_notes({&note, 1});
        n_corners = ImGui::GetWindowDrawList()->VtxBuffer.Size - before;
        ImGui::End();
      });
      const std::string words = *note.words ? note.words : meaning_of(note.mean);
      EXPECT_THAT(text, HasSubstr(words));
      EXPECT_GT(n_corners, 4 * std::ranges::count_if(words, [](char c) { return c != ' '; }))
          << words << ": nothing is drawn beside it";
    }
  }
}

TEST(Words, the_bar_says_only_what_there_is_and_in_plain_words) {
  EXPECT_EQ(bar_words({}), "nothing is running");
  EXPECT_EQ(bar_words({.source = "race.pdrun", .n_events = 1041}),
            "Recording race.pdrun \xC2\xB7 1,041 events");
  const std::string going = bar_words({.n_events = 20,
                                       .n_dropped = 2,
                                       .running = true,
                                       .device = "cpu 97 % busy",
                                       .draw_ms = 0.61,
                                       .range = "12.0 ms"});
  for (const char* part : {"20 events recorded", "running", "details of some steps were not kept",
                           "cpu 97 % busy", "drawing takes 0.6 ms", "measured range: 12.0 ms"})
    EXPECT_THAT(going, HasSubstr(part));
  EXPECT_THAT(bar_words({.running = true, .held = true}), HasSubstr("held between two steps"));
  Stage stage;
  stage.shell.take(streams::one_run("jacobi"));
  stage.shell.show(Screen::Live);
  stage.settle();
  const std::string said = stage.said();
  for (const char* jargon : {"payload", "range: none", "engine idle", "eos", "identical to AR"})
    EXPECT_THAT(said, Not(HasSubstr(jargon)));
  EXPECT_THAT(said, HasSubstr("ended at max tokens"));
}

TEST(Words, a_machine_without_a_gpu_is_told_as_a_fact_and_not_as_a_fault) {
  Stage stage;
  stage.shell.show(Screen::Welcome);
  stage.settle();
  const std::string said = stage.said();
  EXPECT_THAT(said, HasSubstr("- GPU no driver found"));
  EXPECT_THAT(said, HasSubstr("+ CPU"));
  stage.catalog.health = {{"models", "none ready", false, "Open one."}};
  EXPECT_THAT(stage.said(), HasSubstr("x models none ready"));
}

TEST(Words, an_opened_recordings_setup_tells_of_the_recording) {
  const Folder folder;
  std::vector<engine::Event> events = streams::race({"ar", "lookahead"});
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event)) {
      started->prompt = "How many onions were recorded?";
      started->seed = 4711;
      started->temperature = 0.5f;
    }
  Stage stage;
  stage.shell.form().prompt = "What the next run is asked.";
  stage.open(recorded(folder, events));
  ASSERT_EQ(stage.shell.screen(), Screen::Compare);
  std::string said = stage.said();
  EXPECT_THAT(said, HasSubstr("as recorded"));
  EXPECT_THAT(said, HasSubstr("How many onions were recorded?"));
  EXPECT_THAT(said, HasSubstr("The next run"));
  EXPECT_THAT(said, Not(HasSubstr("What the next run is asked.")));
  EXPECT_THAT(said, Not(HasSubstr("in this session"))) << "of a recording that is untrue";
  // In the session itself it is the form.
  stage.shell.take(streams::one_run("jacobi"));
  stage.settle();
  said = stage.said();
  EXPECT_THAT(said, Not(HasSubstr("as recorded")));
}

std::string value_of(const RecordedSetup& setup, const std::string& label) {
  const auto at = std::ranges::find(setup.rows, label, &Fact::label);
  return at == setup.rows.end() ? "absent" : at->value;
}

TEST(Words, where_a_speedup_comes_from_is_true_of_a_recording_too) {
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  const std::string how = how_measured(timeline, timeline.race(1));
  EXPECT_THAT(how, HasSubstr("in the same session"));
  EXPECT_THAT(how, Not(HasSubstr("this session")));
}

// Five lanes, C and E of a model that was trained on.
std::vector<engine::Event> race_of_two_models() {
  std::vector<engine::Event> events =
      streams::race({"ar", "lookahead", "jacobi", "speculative", "ar"});
  engine::ModelLoaded after = streams::story().model;
  after.model = 3;
  after.name = "demo-cllm";
  after.weights_hash = "fnv1a64:00000000000000cc";
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event))
      if (started->lane == 2 || started->lane == 4) started->model = after.model;
  events.insert(events.begin(), after);
  return events;
}

TEST(Words, each_speedup_is_against_the_plain_lane_of_its_own_model) {
  const auto timeline = timeline_of(race_of_two_models());
  const std::vector<const engine::RunRecord*> runs = timeline.race(1);
  ASSERT_EQ(runs.size(), 5u);
  const auto of_lanes = [&](const std::vector<std::size_t>& lanes) {
    std::vector<const engine::RunRecord*> chosen;
    for (const std::size_t lane : lanes) chosen.push_back(runs[lane]);
    return how_measured(timeline, chosen);
  };
  const std::string of_each = ": plain decoding of this prompt by the lane's own model";
  EXPECT_THAT(of_lanes({0, 1, 2, 3, 4}),
              HasSubstr("own compute, B, D against A; C against E" + of_each));
  EXPECT_THAT(of_lanes({0, 1, 2}),
              HasSubstr("own compute, B against A; C against a run not shown" + of_each));
  // By the letters that these have side by side.
  EXPECT_THAT(of_lanes({2, 4}), HasSubstr("own compute against B, plain decoding of this prompt"));
  EXPECT_THAT(of_lanes({1, 0, 4}), HasSubstr("own compute against B, plain decoding"))
      << "nothing is held against C";
  EXPECT_THAT(of_lanes({4}), HasSubstr("own compute against A, plain decoding"));
  EXPECT_THAT(of_lanes({2}), HasSubstr("own compute against a plain run of this prompt"));

  Stage stage;
  stage.shell.take(race_of_two_models());
  stage.shell.show(Screen::Compare);
  stage.settle();
  EXPECT_THAT(stage.said(), HasSubstr("B, D against A; C against E"));
}

TEST(Words, a_lane_of_one_prompt_says_that_seed_had_one_branch) {
  const auto said = [](const std::vector<engine::Event>& events, float width) {
    Stage stage;
    ImGui::GetIO().DisplaySize = {width, 1000};
    stage.shell.take(events);
    stage.shell.show(Screen::Compare);
    stage.settle();
    return stage.said();
  };
  const std::vector<std::string> five = {"ar", "lookahead", "jacobi", "seed", "prompt-lookup"};
  EXPECT_THAT(said(streams::race(five), 1600), HasSubstr("D seed, 1 branch"));
  EXPECT_THAT(said(streams::race({"ar", "mcsd"}), 1600), Not(HasSubstr("1 branch")));
  EXPECT_THAT(said(streams::race(five), 700), Not(HasSubstr("1 branch")))
      << "its verdict goes before where there is no room for both";
  // A text of several took turns, and is no branch alone.
  std::vector<engine::Event> turns = streams::race({"ar", "seed"});
  const auto begun = std::ranges::find_if(turns, [](const engine::Event& event) {
    const auto* started = std::get_if<engine::RunStarted>(&event);
    return started && started->run == 2;
  });
  ASSERT_NE(begun, turns.end());
  const engine::Nanoseconds t = std::get<engine::RunStarted>(*begun).t;
  turns.insert(begun + 1, engine::Queued{.t = t, .run = 2, .resource = "draft"});
  EXPECT_THAT(said(turns, 1600), Not(HasSubstr("1 branch")));
}

TEST(Words, a_text_that_took_turns_with_others_has_no_speedup_and_says_why) {
  std::vector<engine::Event> events = streams::race({"ar", "mcsd"});
  const auto begun = std::ranges::find_if(events, [](const engine::Event& event) {
    const auto* started = std::get_if<engine::RunStarted>(&event);
    return started && started->run == 2;
  });
  ASSERT_NE(begun, events.end());
  const engine::Nanoseconds t = std::get<engine::RunStarted>(*begun).t;
  events.insert(begun + 1, engine::Queued{.t = t, .run = 2, .resource = "draft"});
  const auto timeline = timeline_of(events);
  const std::vector<const engine::RunRecord*> runs = timeline.race(1);
  EXPECT_THAT(how_measured(timeline, runs), HasSubstr("has no speed-up of its own"));
  EXPECT_THAT(how_measured(timeline, {runs[0]}), Not(HasSubstr("of its own")));
  const RunTimes times = times_of(*runs[1]);
  const Numbers numbers = numbers_of(timeline, *runs[1], times, times.steps.size());
  EXPECT_EQ(numbers.speedup.value, "-");
  EXPECT_THAT(numbers.speedup.numbers, HasSubstr("it took turns with other texts"));
}

TEST(Words, a_recorded_setup_is_complete) {
  const auto timeline = timeline_of(streams::race({"ar", "lookahead"}));
  const Catalog catalog = streams::catalog();
  const engine::RunRecord& run = *timeline.race(1)[1];
  const RecordedSetup one = recorded_setup(timeline, {&run}, catalog);
  EXPECT_EQ(one.prompt, run.started.prompt);
  EXPECT_EQ(value_of(one, "decoder"), "Lookahead");
  for (const auto& [name, value] : run.started.options) EXPECT_EQ(value_of(one, name), value);
  EXPECT_EQ(value_of(one, "temperature"), "0 (greedy)");
  EXPECT_EQ(value_of(one, "seed"), std::to_string(run.started.seed));
  EXPECT_EQ(value_of(one, "max tokens"), std::to_string(run.started.max_tokens));
  EXPECT_EQ(value_of(one, "model"), timeline.model(run.started.model)->name);
  const RecordedSetup both = recorded_setup(timeline, timeline.race(1), catalog);
  EXPECT_NE(value_of(both, "A  AR"), "absent");
  EXPECT_NE(value_of(both, "B  Lookahead"), "absent");
}

TEST(Words, a_value_without_room_beside_its_label_is_whole_on_lines_below) {
  Stage stage;
  stage.settle();
  float right = 0, drawn = 0;
  const std::string value = "78 % of rows, 2.80 ms of every step, and some more words than fit";
  const std::string said = stage.gui.said([&] {
    ImGui::SetNextWindowSize({200, 300});
    ImGui::Begin("narrow");
    right = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - ImGui::GetStyle().WindowPadding.x;
    const int before = ImGui::GetWindowDrawList()->VtxBuffer.Size;
    label_value("waste", value, Truth::Derived);
    label_value(Figure{.label = "rows", .value = "7.5", .formula = "rows / steps"});
    label_value(Figure{.label = "waste", .value = value, .formula = "rows / rows"});
    const auto& corners = ImGui::GetWindowDrawList()->VtxBuffer;
    for (int i = before; i < corners.Size; ++i) drawn = std::max(drawn, corners[i].pos.x);
    ImGui::End();
  });
  EXPECT_THAT(said, HasSubstr(value));
  EXPECT_GT(drawn, 0);
  EXPECT_LE(drawn, right + 1);
}

TEST(Words, a_text_is_cut_between_characters_and_no_wider_than_its_room) {
  Stage stage;
  stage.settle();
  stage.gui.said([&] {
    ImGui::Begin("cut");
    EXPECT_EQ(elided("short", 400), "short");
    const std::string text = "a run \xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC with a long name";
    for (float width = 10; width < 200; width += 3) {
      const std::string cut = elided(text, width);
      const std::size_t kept = cut.ends_with("...") ? cut.size() - 3 : cut.size();
      EXPECT_EQ(engine::whole_characters(text, kept), kept) << cut;
      if (kept > 0) {
        EXPECT_LE(ImGui::CalcTextSize(cut.c_str()).x, width) << cut;
      }
    }
    ImGui::End();
  });
}

TEST(Words, a_long_name_leaves_room_for_the_runs_figure) {
  Stage stage;
  stage.shell.take(streams::one_run("jacobi"));
  stage.shell.show(Screen::Live);
  stage.shell.view().run_names[1] = "with a wider window and a name that goes on and on";
  stage.settle();
  EXPECT_THAT(stage.said(), testing::ContainsRegex("with a wider[a-z ]*\\.\\.\\. [0-9.]+ tok/s"));
}

// What of the lanes' height there is at a window's height.
std::pair<float, float> heights_at(Stage& stage, float window_height) {
  ImGui::GetIO().DisplaySize = {1600, window_height};
  stage.settle();
  return {ImGui::FindWindowByName("Lanes###compare.lanes")->Size.y,
          ImGui::FindWindowByName("Timelines###compare.gantt")->Size.y};
}

TEST(Words, lanes_take_the_height_the_time_lines_do_not_need) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"}));
  stage.shell.show(Screen::Compare);
  const auto [lanes, below] = heights_at(stage, 1000);
  EXPECT_GT(lanes, 1.3f * below);
  const ImGuiWindow* time_lines = ImGui::FindWindowByName("Timelines###compare.gantt");
  EXPECT_EQ(time_lines->ScrollMax.y, 0) << "all lanes of the time line are seen";
  const auto [more_lanes, same_below] = heights_at(stage, 1300);
  EXPECT_FLOAT_EQ(same_below, below);
  EXPECT_FLOAT_EQ(more_lanes, lanes + 300);
}

}  // namespace
