// Actions of keys: all actions, the Inspector's pin, the order of lanes, rebound keys, and the export of
// a trace while the window draws.
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "engine/trace/describe.h"
#include "engine/trace/export.h"
#include "engine/trace/page/html.h"
#include "engine/trace/page/report.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/prepared.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"
#include "ui/files/exporting.h"
#include "ui/files/files.h"
#include "ui/files/notes.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/prepare/figure.h"
#include "ui/prepare/status.h"
#include "ui/shell/shell.h"

namespace {

namespace fs = std::filesystem;
using engine::test::Folder;
using testing::HasSubstr;
using testing::Not;
using namespace ui;

struct Stage {
  headless::Headless gui;
  engine::CommandQueue commands;
  Catalog catalog = streams::catalog();
  Shell shell{catalog, commands, ""};

  explicit Stage(const std::vector<engine::Event>& events = streams::one_run("lookahead")) {
    shell.take(events);
    shell.show(Screen::Live);
    settle();
  }
  void settle() {
    for (int i = 0; i < 3; ++i) gui.frame(shell);
  }
};

// Returns the visible lanes of the timeline in their order.
std::vector<LaneKey> lanes_of(Shell& shell) {
  return shell.notes().lanes.arranged(shell.state<TimelineView>().natural_lanes);
}

TEST(Actions, every_action_is_handled) {
  Stage stage;
  std::set<Action> done;
  for (const KeyAction& key : key_actions()) {
    EXPECT_NO_THROW(stage.shell.perform(key.action)) << key.does;
    done.insert(key.action);
    stage.gui.frame(stage.shell);
  }
  EXPECT_EQ(done.size(), static_cast<std::size_t>(Action::LessonRestart) + 1)
      << "an action has no key";
  EXPECT_THROW(stage.shell.perform(static_cast<Action>(1000)), engine::ContractError);
}

TEST(Actions, pinned_place_stays_in_the_inspector) {
  Stage stage;
  stage.shell.selection().locked = {1, 5, -1, -1};
  stage.settle();
  stage.shell.perform(Action::PinPlace);
  stage.shell.selection().locked = {1, 9, -1, -1};
  stage.settle();
  EXPECT_THAT(stage.gui.said(stage.shell), HasSubstr("pinned"));
  EXPECT_THAT(stage.gui.said(stage.shell), HasSubstr("Step 5:"));
  EXPECT_THAT(stage.gui.said(stage.shell), Not(HasSubstr("Step 9:")));
  stage.shell.perform(Action::PinPlace);
  EXPECT_THAT(stage.gui.said(stage.shell), HasSubstr("Step 9:"));
  EXPECT_THAT(stage.gui.said(stage.shell), Not(HasSubstr("pinned")));
}

TEST(Actions, keys_move_the_lane_clicked_last) {
  Stage stage;
  const auto lanes = [&] { return lanes_of(stage.shell); };
  const std::vector<LaneKey> before = lanes();
  ASSERT_GT(before.size(), 3u);
  stage.shell.state<TimelineView>().lane_key = before[1];
  stage.shell.perform(Action::LaneUp);
  EXPECT_EQ(lanes()[0], before[1]);
  EXPECT_EQ(lanes()[1], before[0]);
  stage.shell.perform(Action::LaneUp);  // it is already at the top
  EXPECT_EQ(lanes()[0], before[1]);
  stage.shell.perform(Action::LaneDown);
  EXPECT_EQ(lanes(), before);
  stage.shell.state<TimelineView>().lane_key = {7, LaneKind::Commit};
  stage.shell.perform(Action::LaneDown);
  EXPECT_EQ(lanes(), before);
  EXPECT_THAT(stage.shell.message(), HasSubstr("Click a lane"));
}

TEST(Actions, lane_order_is_saved_beside_the_recording) {
  const Folder folder;
  std::vector<LaneKey> arranged;
  LaneKey collapsed;
  {
    Stage stage;
    LaneOrder& lanes = stage.shell.notes().lanes;
    stage.shell.state<TimelineView>().lane_key = collapsed = lanes_of(stage.shell)[2];
    stage.shell.perform(Action::LaneUp);
    lanes.toggle_collapsed(collapsed);
    lanes.hide(lanes_of(stage.shell).back());
    arranged = lanes_of(stage.shell);
    stage.shell.save(folder / "mine.pdrun");
    ASSERT_TRUE(waiting::until([&] { return !stage.shell.saves(); },
                               [&] { stage.gui.frame(stage.shell); }));
  }
  Stage stage;
  const std::vector<LaneKey> own = lanes_of(stage.shell);
  stage.shell.open(folder / "mine.pdrun");
  ASSERT_TRUE(
      waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); }));
  stage.settle();
  EXPECT_EQ(lanes_of(stage.shell), arranged);
  EXPECT_TRUE(stage.shell.notes().lanes.collapsed(collapsed));
  EXPECT_NE(arranged, own) << "the session's lanes have another order";
}

TEST(Actions, notes_name_the_lanes) {
  Notes notes;
  notes.lanes.restore({std::vector<LaneKey>{{-1, LaneKind::Commit}, {1, LaneKind::PoolHit}},
                       std::vector<LaneKey>{{0, LaneKind::Cache}},
                       {}});
  const std::string text = to_text(notes);
  EXPECT_THAT(text, HasSubstr("\nlanes = commit, B pool hit\ncollapsed lanes = A KV\n"));
  Notes again;
  std::string why;
  ASSERT_TRUE(from_text(text, again, why)) << why;
  EXPECT_EQ(again, notes);
  // The line of an unknown lane, from a newer program, is kept unchanged.
  Notes newer;
  ASSERT_TRUE(from_text("decoscope notes 1\nlanes = target, teleport\n", newer, why)) << why;
  EXPECT_TRUE(newer.lanes.untouched());
  EXPECT_THAT(to_text(newer), HasSubstr("lanes = target, teleport"));
}

TEST(Keys, chord_words_parse_to_the_same_chord) {
  for (const KeyAction& key : key_actions())
    EXPECT_EQ(chord_of(chord_words(key.chord)), std::optional(key.chord)) << key.name;
  EXPECT_EQ(chord_words(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_LeftArrow), "Ctrl+Shift+Left");
  for (const char* no_key : {"", "Ctrl+", "Hyper+L", "Ctrl+Nothing", "LL"})
    EXPECT_EQ(chord_of(no_key), std::nullopt) << no_key;
}

TEST(Keys, user_keys_are_saved_and_replace_defaults) {
  Settings settings;
  std::string why;
  ASSERT_TRUE(from_text("key.next-lens = Ctrl+L\nkey.of-a-newer-program = F9\n", settings, why));
  EXPECT_THAT(to_text(settings), HasSubstr("key.next-lens = Ctrl+L\n"));
  EXPECT_FALSE(from_text("key.next-lens = Ctrl+Nothing\n", settings, why));
  EXPECT_THAT(why, HasSubstr("line 1"));
  const std::vector<BoundKey> keys = bound_keys(settings.keys);
  ASSERT_EQ(keys.size(), key_actions().size());
  for (const BoundKey& key : keys) {
    const bool own = key.of->action == Action::NextLens;
    EXPECT_EQ(key.changed, own);
    EXPECT_EQ(key.chord, own ? ImGuiMod_Ctrl | ImGuiKey_L : key.of->chord);
    EXPECT_EQ(taken_by(keys, key), nullptr);
  }
  // Two actions with one chord: the first of the table has it, and the key list reports the conflict.
  const std::vector<BoundKey> both = bound_keys({{"next-lens", ImGuiKey_N}});
  for (const BoundKey& key : both)
    if (key.of->action == Action::NextLens) {
      EXPECT_EQ(taken_by(both, key)->action, Action::StepEngine);
    }
}

TEST(Exporting, window_draws_while_a_trace_is_written) {
  EXPECT_TRUE(waiting::in_the_midst_of(4'000, [](int n_tokens) {
    const Folder folder;
    Stage stage(streams::one_run("jacobi", n_tokens));
    const engine::Timeline& live = stage.shell.session().live().timeline;
    const std::int64_t before = live.n_events();
    stage.shell.export_trace(folder / "trace.json", {});
    EXPECT_TRUE(stage.shell.exports());
    // Events that arrive meanwhile wait, and the document shown does not change.
    stage.shell.take({engine::Notice{.t = 1, .text = "meanwhile"}});
    EXPECT_EQ(live.n_events(), before);
    stage.shell.open(folder / "another.pdrun");
    EXPECT_FALSE(stage.shell.reads());
    int n_frames = 0;
    EXPECT_TRUE(waiting::until([&] { return !stage.shell.exports(); },
                               [&] {
                                 stage.gui.frame(stage.shell);
                                 ++n_frames;
                               }));
    EXPECT_EQ(live.n_events(), before + 1);
    EXPECT_THAT(stage.shell.message(), HasSubstr("and checked it"));
    EXPECT_GT(fs::file_size(folder / "trace.json"), 1000u);
    return n_frames > 2;
  })) << "the window drew no frame while the file was written";
}

TEST(Exporting, escape_cancels_and_leaves_no_file) {
  EXPECT_TRUE(waiting::in_the_midst_of(4'000, [](int n_tokens) {
    const Folder folder;
    Stage stage(streams::one_run("jacobi", n_tokens));
    stage.shell.export_trace(folder / "trace.json", {});
    stage.shell.perform(Action::Deselect);
    EXPECT_TRUE(waiting::until([&] { return !stage.shell.exports(); },
                               [&] { stage.gui.frame(stage.shell); }));
    const bool given_up = stage.shell.message().find("not exported") != std::string::npos;
    EXPECT_EQ(fs::exists(folder / "trace.json"), !given_up) << stage.shell.message();
    return given_up;
  })) << "nothing was cancelled";
}

TEST(Exporting, existing_file_is_kept_and_trace_gets_next_name) {
  const Folder folder;
  const auto timeline = timeline_of(streams::one_run("ar"));
  std::ofstream(folder / "trace.json") << "somebody's";
  EXPECT_THAT(ui::export_trace(timeline, folder / "trace.json", {}), HasSubstr("trace-2.json"));
  EXPECT_EQ(fs::file_size(folder / "trace.json"), 10u);
  EXPECT_GT(fs::file_size(folder / "trace-2.json"), 1000u);
}

TEST(Exporting, report_has_the_prompt_only_with_consent) {
  const Folder folder;
  Stage stage;
  const auto wait = [&] {
    return waiting::until([&] { return !stage.shell.exports(); },
                          [&] { stage.gui.frame(stage.shell); });
  };
  const std::string prompt = stage.shell.session().shown().timeline.run(1)->started.prompt;
  ASSERT_NE(prompt, "");
  const std::string first_line = prompt.substr(0, prompt.find('\n'));
  stage.shell.export_report(folder / "new/run.md", false);
  EXPECT_TRUE(stage.shell.exports());
  ASSERT_TRUE(wait());
  EXPECT_THAT(stage.shell.message(), HasSubstr("Wrote " + folder / "new/run.md"));
  const std::string without = engine::test::read_file(folder / "new/run.md");
  EXPECT_THAT(without, HasSubstr("# Decoscope report"));
  EXPECT_THAT(without, HasSubstr("Prompt: left out"));
  EXPECT_THAT(without, Not(HasSubstr("Prompt:\n")));
  stage.shell.export_report(folder / "new/run.md", true);
  ASSERT_TRUE(wait());
  EXPECT_THAT(engine::test::read_file(folder / "new/run-2.md"),
              HasSubstr("Prompt:\n\n    " + first_line));
  EXPECT_EQ(engine::test::read_file(folder / "new/run.md"), without) << "no file is replaced";
}

TEST(Exporting, description_is_the_text_of_every_run) {
  const Folder folder;
  Stage stage;
  stage.shell.export_description(folder / "run.txt");
  ASSERT_TRUE(waiting::until([&] { return !stage.shell.exports(); },
                             [&] { stage.gui.frame(stage.shell); }));
  EXPECT_EQ(engine::test::read_file(folder / "run.txt"),
            engine::describe(stage.shell.session().shown().timeline));
}

TEST(Exporting, cancelled_texts_leave_no_file) {
  const Folder folder;
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  int n_asked = 0;
  double last = -1;
  const auto never = [&](double fraction) {
    EXPECT_GT(fraction, last);
    EXPECT_LT(fraction, 1);
    last = fraction;
    ++n_asked;
    return true;
  };
  EXPECT_THAT(ui::export_description(timeline, folder / "a.txt", never), HasSubstr("Wrote "));
  EXPECT_EQ(n_asked, 3) << "before each run and before the file is written";
  for (int stop_at = 0; stop_at < n_asked; ++stop_at) {
    int n = 0;
    const auto stop = [&](double) { return n++ < stop_at; };
    EXPECT_THAT(ui::export_description(timeline, folder / "b.txt", stop),
                HasSubstr("not exported: cancelled"));
    EXPECT_FALSE(fs::exists(folder / "b.txt"));
  }
  const auto at_once = [](double) { return false; };
  EXPECT_THAT(ui::export_report(timeline, folder / "b.md", {}, at_once), HasSubstr("cancelled"));
  EXPECT_FALSE(fs::exists(folder / "b.md"));
  std::ofstream(folder / "file") << "no folder";
  EXPECT_THAT(ui::export_report(timeline, folder / "file/b.md", {}), Not(HasSubstr("Wrote")));
}

TEST(Exporting, page_says_what_its_limit_leaves_out) {
  const Folder folder;
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  EXPECT_EQ(ui::export_page(timeline, folder / "a.html", {}), "Wrote " + folder / "a.html" + ".");
  const std::size_t n_bytes = fs::file_size(folder / "a.html");
  double last = -1;
  const auto progress = [&](double fraction) {
    EXPECT_GE(fraction, last);
    EXPECT_LT(fraction, 1) << "at 1 the bar says that the file is being checked";
    last = fraction;
    return true;
  };
  const std::string said =
      ui::export_page(timeline, folder / "b.html",
                      {.max_bytes = n_bytes - 1, .to_get_all = "tick the box"}, progress);
  EXPECT_THAT(said, HasSubstr("Wrote " + folder / "b.html" + ".\nNote: omitted to keep"));
  EXPECT_THAT(said, HasSubstr("; tick the box."));
  EXPECT_LT(fs::file_size(folder / "b.html"), n_bytes);
  const std::string refused =
      ui::export_page(timeline, folder / "c.html", {.max_bytes = 1, .to_get_all = "tick the box"});
  EXPECT_THAT(refused, HasSubstr("tick the box"));
  EXPECT_FALSE(fs::exists(folder / "c.html"));
}

TEST(Exporting, a_large_page_is_whole_only_on_request) {
  const Folder folder;
  Stage stage{std::vector<engine::Event>{}};
  stage.shell.show(Screen::Welcome);
  stage.shell.take(streams::one_run("lookahead", 80'000));
  const auto export_page = [&](const std::string& path, bool of_any_size) {
    stage.shell.export_page(path, false, of_any_size);
    EXPECT_TRUE(waiting::until([&] { return !stage.shell.exports(); },
                               [&] { stage.gui.frame(stage.shell); }));
    return fs::file_size(path);
  };
  EXPECT_LE(export_page(folder / "limited.html", false), 5'000'000u);
  EXPECT_THAT(stage.shell.message(), HasSubstr("the box \"Web page: no size limit\""));
  EXPECT_GT(export_page(folder / "whole.html", true), 5'000'000u);
  EXPECT_THAT(stage.shell.message(), Not(HasSubstr("omitted")));
}

TEST(Exporting, reports_progress) {
  const auto timeline = timeline_of(streams::race({"ar", "jacobi"}));
  std::vector<double> reported;
  engine::TraceOptions options;
  options.progress = [&](double fraction) {
    reported.push_back(fraction);
    return true;
  };
  engine::write_trace(timeline, options, [](std::string_view) {});
  ASSERT_GE(reported.size(), 4u);
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_GE(reported.front(), 0);
  EXPECT_LE(reported.back(), 1);
  EXPECT_GT(reported.back(), 0.5);
}

TEST(Captions, caption_explains_content_and_letters) {
  Stage stage;
  stage.shell.caption_pictures(true);
  const std::string said = stage.gui.said(stage.shell);
  const engine::RunRecord& run = *stage.shell.session().shown().timeline.run(1);
  EXPECT_THAT(said, HasSubstr("without a letter: measured"));
  EXPECT_THAT(said, HasSubstr(truth_words(Truth::Derived)));
  EXPECT_THAT(said, HasSubstr(truth_words(Truth::Hindsight)));
  EXPECT_THAT(said, HasSubstr("seed " + std::to_string(run.started.seed)));
  stage.shell.caption_pictures(false);
  EXPECT_THAT(stage.gui.said(stage.shell), Not(HasSubstr("without a letter")));
}

}  // namespace
