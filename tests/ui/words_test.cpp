// The text of the window: every mark is explained, text is not cut, and statements are true.
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/utf8.h"
#include "engine/event/recording/recorder.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/status.h"
#include "ui/prepare/tokens/difference.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/shell/layout.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/legend.h"

namespace {

using namespace ui;
using engine::test::Folder;
using headless::Headless;
using testing::AllOf;
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

TEST(Legend, explains_every_cell) {
  for (int i = 0; i < kMeans; ++i) {
    const auto mean = static_cast<Mean>(i);
    const bool reported = std::ranges::any_of(cell_marks(), [mean](const MarkNote& note) {
      return mean == Mean::Diverged ? note.diverged
                                    : note.mean == mean && note.origin == Mean::Prefix;
    });
    EXPECT_TRUE(reported) << look(mean).name;
  }
}

TEST(Legend, explains_the_corner_of_every_origin) {
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

TEST(Legend, every_entry_has_words_and_a_sample) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"}));
  stage.shell.show(Screen::Compare);
  stage.settle();
  EXPECT_THAT(stage.said(), HasSubstr("d derived \xC2\xB7 h in hindsight"));
  // Every entry has words and a drawn sample.
  std::vector<std::span<const MarkNote>> legends{cell_marks(), letter_marks()};
  for (const Panel& panel : panels()) legends.push_back(panel.marks);
  EXPECT_GE(
      std::ranges::count_if(panels(), [](const Panel& panel) { return !panel.marks.empty(); }), 8);
  for (const auto& notes : legends) {
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
          << words << ": no sample is drawn";
    }
  }
}

TEST(Words, status_bar_has_only_known_facts) {
  const auto bar_words = [](const BarFacts& facts) { return bar_forms(facts).front(); };
  EXPECT_EQ(bar_words({}), "idle");
  EXPECT_EQ(bar_words({.source = "race.pdrun", .n_events = 1041}),
            "Recording race.pdrun \xC2\xB7 1,041 events");
  EXPECT_EQ(bar_words({.model = "demo-target, f32", .n_events = 20}),
            "demo-target, f32 \xC2\xB7 20 events recorded \xC2\xB7 idle");
  const std::string going = bar_words({.n_events = 20,
                                       .n_dropped = 2,
                                       .running = true,
                                       .device = "cpu 97 % busy",
                                       .draw_ms = 0.61,
                                       .range = "12.0 ms"});
  for (const char* part : {"20 events recorded", "running", "details of some steps were dropped",
                           "cpu 97 % busy", "drawing takes 0.6 ms", "measured range: 12.0 ms"})
    EXPECT_THAT(going, HasSubstr(part));
  EXPECT_THAT(bar_words({.running = true, .paused = true}), HasSubstr("paused between two steps"));
  const char* without_focus = "window without focus: at most 20 frames per second";
  EXPECT_THAT(bar_words({.running = true, .unfocused = true}), HasSubstr(without_focus));
  EXPECT_THAT(bar_words({.running = true, .quiet = true, .unfocused = true}),
              AllOf(HasSubstr("measuring: few frames"), Not(HasSubstr(without_focus))));
  Stage stage;
  stage.shell.take(streams::one_run("jacobi"));
  stage.shell.show(Screen::Live);
  stage.settle();
  const std::string said = stage.said();
  for (const char* jargon : {"payload", "range: none", "engine idle", "eos", "identical to AR"})
    EXPECT_THAT(said, Not(HasSubstr(jargon)));
  EXPECT_THAT(said, HasSubstr("ended at max tokens"));
}

TEST(Words, missing_gpu_is_not_an_error) {
  Stage stage;
  stage.shell.show(Screen::Welcome);
  stage.settle();
  const std::string said = stage.said();
  EXPECT_THAT(said, HasSubstr("- GPU no driver found"));
  EXPECT_THAT(said, HasSubstr("+ CPU"));
  stage.catalog.health = {{"models", "none ready", false, "Open one."}};
  EXPECT_THAT(stage.said(), HasSubstr("x models none ready"));
}

TEST(Words, setup_of_a_recording_shows_recorded_values) {
  const Folder folder;
  std::vector<engine::Event> events = streams::race({"ar", "lookahead"});
  for (engine::Event& event : events)
    if (auto* started = std::get_if<engine::RunStarted>(&event)) {
      started->prompt = "How many onions were recorded?";
      started->seed = 4711;
      started->temperature = 0.5f;
    }
  Stage stage;
  stage.shell.form().prompt = "The prompt of the next run.";
  stage.open(recorded(folder, events));
  ASSERT_EQ(stage.shell.screen(), Screen::Compare);
  std::string said = stage.said();
  EXPECT_THAT(said, HasSubstr("as recorded"));
  EXPECT_THAT(said, HasSubstr("How many onions were recorded?"));
  EXPECT_THAT(said, HasSubstr("The next run"));
  EXPECT_THAT(said, Not(HasSubstr("The prompt of the next run.")));
  EXPECT_THAT(said, Not(HasSubstr("in this session"))) << "not true for a recording";
  // In the live session the form is shown.
  stage.shell.take(streams::one_run("jacobi"));
  stage.settle();
  said = stage.said();
  EXPECT_THAT(said, Not(HasSubstr("as recorded")));
}

std::string value_of(const RecordedSetup& setup, const std::string& label) {
  const auto at = std::ranges::find(setup.rows, label, &RecordedRow::label);
  return at == setup.rows.end() ? "absent" : at->value;
}

TEST(Words, recorded_speedup_is_of_the_same_session) {
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  const std::string how = how_measured(timeline, timeline.race(1));
  EXPECT_THAT(how, HasSubstr("in the same session"));
  EXPECT_THAT(how, Not(HasSubstr("this session")));
}

// Returns a race of five lanes; C and E use a fine-tuned model.
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

TEST(Words, speedup_is_against_plain_lane_of_same_model) {
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
  // The sentence uses the letters with which the lanes are shown.
  EXPECT_THAT(of_lanes({2, 4}), HasSubstr("own compute against B, plain decoding of this prompt"));
  EXPECT_THAT(of_lanes({1, 0, 4}), HasSubstr("own compute against B, plain decoding"))
      << "no lane is compared with C";
  EXPECT_THAT(of_lanes({4}), HasSubstr("own compute against A, plain decoding"));
  EXPECT_THAT(of_lanes({2}), HasSubstr("own compute against plain decoding of this prompt"));

  Stage stage;
  stage.shell.take(race_of_two_models());
  stage.shell.show(Screen::Compare);
  stage.settle();
  EXPECT_THAT(stage.said(), HasSubstr("B, D against A; C against E"));
}

TEST(Words, lane_name_shows_one_branch_of_seed) {
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
      << "if there is no room for both, the badge is shown and the branches are not";
  // A sequence of a search shared the models; it does not have one branch.
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

TEST(Words, sequence_with_shared_models_has_no_speedup) {
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
  EXPECT_THAT(numbers.speedup.numbers, HasSubstr("shared the models with other sequences"));
}

TEST(Words, plain_decoding_has_one_short_name) {
  EXPECT_EQ(short_name("ar"), "AR");
  EXPECT_EQ(short_name("prompt-lookup"), "prompt-lookup");
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  EXPECT_EQ(name_of(timeline.runs()[0]), "A AR");
  const auto alone = timeline_of(streams::one_run("ar"));
  EXPECT_EQ(name_of(alone.runs()[0]), "AR");
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi"}));
  for (const Screen screen : {Screen::Live, Screen::Compare, Screen::Lab}) {
    stage.shell.show(screen);
    stage.settle();
    const std::string said = " " + stage.said() + " ";
    for (const char* other : {" ar ", "Autoregressive", "speedup", "Speedup"})
      EXPECT_THAT(said, Not(HasSubstr(other))) << screen_name(screen);
  }
  stage.shell.show(Screen::Compare);
  stage.settle();
  EXPECT_THAT(stage.said(), HasSubstr("speed-up"));
}

TEST(Words, a_recorded_setup_is_complete) {
  const auto timeline = timeline_of(streams::race({"ar", "lookahead"}));
  const Catalog catalog = streams::catalog();
  const engine::RunRecord& run = *timeline.race(1)[1];
  const RecordedSetup one = recorded_setup(timeline, {&run}, catalog);
  EXPECT_EQ(one.prompt, run.started.prompt);
  EXPECT_EQ(value_of(one, "decoder"), "Lookahead");
  EXPECT_EQ(value_of(one, "n-grams verified"), run.started.options.at("n_guesses"));
  for (const auto& [name, value] : run.started.options) {
    EXPECT_EQ(value_of(one, option_label("lookahead", name)), value);
    const auto row = std::ranges::find(one.rows, name, &RecordedRow::name);
    ASSERT_NE(row, one.rows.end()) << name;
    EXPECT_EQ(row->help, name + " = " + value);
  }
  EXPECT_EQ(value_of(one, "temperature"), "0 (greedy)");
  EXPECT_EQ(value_of(one, "seed"), std::to_string(run.started.seed));
  EXPECT_EQ(value_of(one, "max tokens"), std::to_string(run.started.max_tokens));
  EXPECT_EQ(value_of(one, "model"), timeline.model(run.started.model)->name);
  const RecordedSetup both = recorded_setup(timeline, timeline.race(1), catalog);
  EXPECT_NE(value_of(both, "A  AR"), "absent");
  EXPECT_THAT(value_of(both, "B  Lookahead"),
              AllOf(HasSubstr("n-grams verified 5"), Not(HasSubstr("n_guesses"))));
  const auto lane = std::ranges::find(both.rows, "B  Lookahead", &RecordedRow::label);
  ASSERT_NE(lane, both.rows.end());
  EXPECT_THAT(lane->help, HasSubstr("n_guesses = 5"));
}

TEST(Words, long_value_is_wrapped_below_its_label) {
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

TEST(Words, a_file_name_is_not_wrapped_at_its_dot) {
  Stage stage;
  stage.settle();
  const std::string text = "A recording (.pdrun) of e.g. a race, or training.jsonl.\nAnd a. b";
  std::set<std::string> wrapped_texts;
  stage.gui.said([&] {
    ImGui::Begin("narrow");
    const float longest = ImGui::CalcTextSize("training.jsonl.").x;
    for (float width = longest + 1; width < 500; width += 1) {
      const std::string lines = whole_words(text, width);
      wrapped_texts.insert(lines);
      EXPECT_EQ(lines.size(), text.size());
      for (std::size_t i = 0; i < text.size(); ++i)
        EXPECT_TRUE(lines[i] == text[i] || (text[i] == ' ' && lines[i] == '\n')) << lines;
      // Dear ImGui wraps the returned text at blanks alone.
      for (const char *line = lines.data(), *end = line + lines.size(); line < end;) {
        const char* wrap =
            ImGui::GetFont()->CalcWordWrapPosition(ImGui::GetFontSize(), line, end, width);
        EXPECT_TRUE(wrap >= end || *wrap == ' ' || *wrap == '\n') << width << ": " << wrap;
        for (; wrap < end && *wrap == ' '; ++wrap) {
        }
        line = wrap < end && *wrap == '\n' ? wrap + 1 : wrap;
      }
    }
    EXPECT_EQ(whole_words(text, 500), text);
    EXPECT_EQ(whole_words("no dot within a word. None.", 60), "no dot within a word. None.");
    EXPECT_EQ(whole_words("training.jsonl", 30), "training.jsonl") << "longer than a line";
    EXPECT_EQ(whole_words("", 30), "");
    ImGui::End();
  });
  EXPECT_GT(wrapped_texts.size(), 2u) << "some widths need a line feed";
}

TEST(Words, text_is_cut_between_characters) {
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

TEST(Words, long_name_leaves_room_for_the_figure) {
  Stage stage;
  stage.shell.take(streams::one_run("jacobi"));
  stage.shell.show(Screen::Live);
  stage.shell.notes().run_names[1] = "with a wider window and a name that goes on and on";
  stage.settle();
  EXPECT_THAT(stage.said(), testing::ContainsRegex("with a wider[a-z ]*\\.\\.\\. [0-9.]+ tok/s"));
}

TEST(Words, the_panel_text_names_its_run) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi"}));
  stage.shell.show(Screen::Live);
  for (const auto& [run, name] : {std::pair{1, "A AR"}, {2, "B jacobi"}}) {
    stage.shell.selection().run = static_cast<engine::RunId>(run);
    stage.settle();
    EXPECT_THAT(stage.said(), HasSubstr(std::string(name) + " 96 tokens"));
  }
}

TEST(Words, a_note_is_marked_in_runs_and_shown_in_the_inspector) {
  Stage stage;
  stage.shell.take(streams::one_run("lookahead"));
  stage.shell.show(Screen::Live);
  stage.settle();
  stage.shell.selection().locked = {1, 3, -1, -1};
  stage.settle();
  EXPECT_THAT(stage.said(), testing::Not(HasSubstr("too wide")));
  EXPECT_THAT(stage.said(), testing::Not(testing::ContainsRegex("note [0-9.,k]+ tok/s")));
  stage.shell.notes().run_notes[1] = "too wide,\nbut fast";
  EXPECT_THAT(stage.said(), testing::ContainsRegex("note [0-9.,k]+ tok/s"));
  EXPECT_THAT(stage.said(), HasSubstr("note on lookahead too wide, but fast"));
}

// Returns the heights of the lanes and of the timelines at a height of the window.
std::pair<float, float> heights_at(Stage& stage, float window_height) {
  ImGui::GetIO().DisplaySize = {1600, window_height};
  stage.settle();
  return {ImGui::FindWindowByName("Lanes###compare.lanes")->Size.y,
          ImGui::FindWindowByName("Timelines###compare.gantt")->Size.y};
}

TEST(Words, lanes_use_the_remaining_height) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"}));
  stage.shell.show(Screen::Compare);
  const auto [lanes, below] = heights_at(stage, 1000);
  EXPECT_GT(lanes, 1.3f * below);
  const ImGuiWindow* time_lines = ImGui::FindWindowByName("Timelines###compare.gantt");
  EXPECT_EQ(time_lines->ScrollMax.y, 0) << "all lanes of the timeline are visible";
  const auto [more_lanes, same_below] = heights_at(stage, 1300);
  EXPECT_FLOAT_EQ(same_below, below);
  EXPECT_FLOAT_EQ(more_lanes, lanes + 300);
}

}  // namespace
