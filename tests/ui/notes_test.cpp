// Bookmarks, names of runs and notes on runs, saved beside a recording.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"
#include "ui/files/notes.h"
#include "ui/panels/live/text_view.h"
#include "ui/panels/time/timeline_view.h"
#include "ui/settings/layout_presets.h"
#include "ui/settings/recorded_layout.h"
#include "ui/shell/layout.h"

namespace {

namespace fs = std::filesystem;
using engine::test::Folder;
using engine::test::read_file;
using engine::test::write_file;
using testing::HasSubstr;
using ui::Bookmark;
using ui::Notes;

Notes some_notes() {
  return {
      {{2, 125'000'000, 14, Bookmark::Kind::Numbered}, {1, 1234.5678, -1, Bookmark::Kind::Kept}},
      {{1, "plain"}, {2, "with = and, commas"}},
      {{1, "two lines:\nC:\\new = \xC3\xA9"}, {3, "\n\\n after a line feed"}}};
}

TEST(Notes, text_parses_to_the_same_notes) {
  Notes read;
  std::string why;
  EXPECT_TRUE(from_text(to_text(some_notes()), read, why)) << why;
  EXPECT_EQ(read, some_notes());
}

TEST(Notes, every_lens_and_clock_has_a_name) {
  for (int lens = 0; lens < ui::kLenses; ++lens)
    for (int clock = 0; clock < ui::kClocks; ++clock) {
      Notes notes, read;
      std::string why;
      notes.view.lens = static_cast<ui::Lens>(lens);
      const auto kind = static_cast<ui::ClockKind>(clock);
      notes.view.ranges = {{3, 0, kind, 1.5e9, -0.125}, {0, 2, kind, 0, 7}};
      EXPECT_FALSE(notes.empty());
      EXPECT_TRUE(from_text(to_text(notes), read, why)) << why;
      EXPECT_EQ(read, notes);
    }
}

TEST(Notes, lines_of_a_newer_program_are_kept) {
  Notes read;
  std::string why;
  EXPECT_TRUE(from_text("decoscope notes 2\ncolumns = wide\n\nrun 1 = a\n", read, why)) << why;
  EXPECT_EQ(read.run_names, (std::map<engine::RunId, std::string>{{1, "a"}}));
  EXPECT_THAT(to_text(read), HasSubstr("\ncolumns = wide\n"));
}

TEST(Notes, places_of_panels_keep_their_lines) {
  Notes notes, read;
  std::string why;
  notes.view.panels = "version=8\n    DockNode  ID=0x00000001\n";
  EXPECT_FALSE(notes.empty());
  EXPECT_TRUE(from_text(to_text(notes), read, why)) << why;
  EXPECT_EQ(read, notes);
  const std::string line = "panels = " + std::string(1000, 'x') + "\n";
  std::string longer = "decoscope notes 1\n";
  while (longer.size() < 3 * ui::kMaxRecordedLayout) longer += line;
  Notes bounded;
  EXPECT_TRUE(from_text(longer, bounded, why)) << why;
  EXPECT_THAT(ui::why_not_layout(bounded.view.panels), HasSubstr("more than 65536 bytes"));
  EXPECT_LT(bounded.view.panels.size(), ui::kMaxRecordedLayout + 2000);
}

TEST(Notes, unreadable_notes_are_set_aside) {
  const Folder folder;
  const std::string recording = folder / "run.pdrun", path = ui::notes_path(recording);
  for (const char* text : {"",
                           "{\"json\": 1}",
                           "decoscope notes 0\n",
                           "decoscope notes 1x\n",
                           "decoscope notes 1\nbookmark = kept, run x\n",
                           "decoscope notes 1\nbookmark = kept, run 1, step 2, nan ns\n",
                           "decoscope notes 1\nbookmark = kept, run 1, step -7, 5 ns\n",
                           "decoscope notes 1\nsomething\n",
                           "decoscope notes 1\nnote of run x = a\n",
                           "decoscope notes 1\nnote of run 1 = \n",
                           "decoscope notes 1\nnote of run 1 = a\\\n",
                           "decoscope notes 1\nnote of run 1 = a\\tb\n",
                           "decoscope notes 1\nnote of run 1 = a\tb\n",
                           "decoscope notes 1\nnote of run 1 = \xC3(\n",
                           "decoscope notes 1\nlens = rose\n",
                           "decoscope notes 1\nrange = compute, 5 to 5\n",
                           "decoscope notes 1\nrange = compute, 0 to nan\n",
                           "decoscope notes 1\nrange = compute, 0 to 1e300\n",
                           "decoscope notes 1\nrange = moon, 0 to 5\n",
                           "decoscope notes 1\nrange of run x = compute, 0 to 5\n",
                           "decoscope notes 1\nrange of race 1 compute, 0 to 5\n",
                           "decoscope notes 1\nrange = steps, 0 to 5 ms\n"}) {
    write_file(path, text);
    std::string why;
    EXPECT_TRUE(ui::load_notes(recording, why).empty()) << text;
    EXPECT_NE(why, "") << text;
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(read_file(path + ".broken"), text);
  }
  std::string why;
  EXPECT_TRUE(ui::load_notes(folder / "none.pdrun", why).empty());
  EXPECT_EQ(why, "") << "a recording without notes is valid";
}

TEST(Notes, names_are_one_line_of_whole_characters) {
  Notes notes;
  notes.run_names[1] = "two\nlines " + std::string(67, 'x') + "\xC3\xA9\xC3\xA9";
  Notes read;
  std::string why;
  ASSERT_TRUE(from_text(to_text(notes), read, why)) << why;
  EXPECT_EQ(read.run_names[1], "two lines " + std::string(67, 'x') + "\xC3\xA9");
}

TEST(Notes, words_of_a_bookmark_name_its_run) {
  const Bookmark numbered{2, 12'500'000, 14, Bookmark::Kind::Numbered},
      kept{1, 5'000, -1, Bookmark::Kind::Kept};
  EXPECT_EQ(ui::bookmark_words(numbered, 2, "B jacobi"),
            "Bookmark 2 (Ctrl+2) of B jacobi at 12.5 ms, step 14");
  EXPECT_EQ(ui::bookmark_words(numbered, 10, "B jacobi"),
            "Bookmark 10 of B jacobi at 12.5 ms, step 14");
  EXPECT_EQ(ui::bookmark_words(kept, 0, "plain"), "Mark of plain at 5.00 us");
}

TEST(Notes, notes_on_runs_have_a_limit) {
  const std::string longest(ui::kMaxRunNote - 1, 'x');
  EXPECT_EQ(ui::as_run_note(longest + "\n"), longest);
  EXPECT_EQ(ui::as_run_note(longest + "\xC3\xA9"), longest) << "no half characters";
  EXPECT_EQ(ui::as_run_note("a\tb\r\n\nc \n\n"), "a b \n\nc");
  EXPECT_EQ(ui::as_run_note(" \n\n"), "");
  const std::string head = "decoscope notes 1\nnote of run 4 = ", line(ui::kMaxRunNote, 'x');
  Notes read;
  std::string why;
  EXPECT_TRUE(from_text(head + line + "\n", read, why)) << why;
  EXPECT_EQ(read.run_notes[4], line);
  EXPECT_FALSE(from_text(head + line + "x\n", read, why));
  EXPECT_THAT(why, HasSubstr("line 2: note of run 4"));
  Notes blank;
  blank.run_notes[1] = "\n";
  EXPECT_EQ(to_text(blank), "decoscope notes 1\n");
}

TEST(Notes, empty_notes_are_not_written) {
  const Folder folder;
  const std::string recording = folder / "run.pdrun";
  EXPECT_EQ(ui::save_notes({}, recording), "");
  EXPECT_FALSE(fs::exists(ui::notes_path(recording)));
  EXPECT_EQ(save_notes(some_notes(), recording), "");
  EXPECT_EQ(ui::save_notes({}, recording), "");  // the last bookmark was removed
  std::string why;
  EXPECT_TRUE(ui::load_notes(recording, why).empty());
  EXPECT_THAT(save_notes(some_notes(), folder / "no/such/folder/run.pdrun"),
              HasSubstr("notes of the recording: "));
}

struct Stage {
  /// @param settings  the folder of the settings; empty: they are not saved
  explicit Stage(const std::string& settings = "") : shell(catalog, commands, settings) {}

  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell;

  void settle() {
    gui.frame(shell);
    ASSERT_TRUE(waiting::until([&] { return !shell.reads() && !shell.saves(); },
                               [&] { gui.frame(shell); }));
  }
  /// Like Ctrl+S when the folder is known.
  void save(const std::string& path) {
    shell.save(path);
    settle();
  }
  void open(const std::string& path) {
    shell.open(path);
    settle();
    frames();
  }
  /// Draws frames until the layout has settled.
  void frames() {
    for (int i = 0; i < 6; ++i) gui.frame(shell);
  }
};

TEST(Notes, the_timeline_shows_bookmarks_of_its_runs) {
  Stage stage;
  stage.shell.take(streams::race({"ar", "jacobi"}));
  const auto n_vertices = [&](ui::Screen screen) {
    for (int i = 0; i < 4; ++i) stage.gui.frame(stage.shell);
    const ImGuiWindow* panel =
        ImGui::FindWindowByName(ui::window_name(screen, "gantt", "").c_str());
    return panel ? panel->DrawList->VtxBuffer.Size : 0;
  };
  const Bookmark of_first{1, 1e6, -1, Bookmark::Kind::Kept},
      of_second{2, 1e6, -1, Bookmark::Kind::Kept};
  std::vector<Bookmark>& set = stage.shell.notes().bookmarks;
  stage.shell.show(ui::Screen::Live);
  stage.shell.selection().run = 1;
  const int none = n_vertices(ui::Screen::Live);
  EXPECT_GT(none, 0);
  set = {of_second};
  EXPECT_EQ(n_vertices(ui::Screen::Live), none) << "a bookmark of another run";
  set = {of_second, of_first};
  EXPECT_GT(n_vertices(ui::Screen::Live), none);
  // The timelines of a race show the bookmarks of all its lanes.
  stage.shell.show(ui::Screen::Compare);
  const int both = n_vertices(ui::Screen::Compare);
  set = {of_second};
  EXPECT_LT(n_vertices(ui::Screen::Compare), both);
}

TEST(Notes, bookmarks_and_names_survive_saving) {
  const Folder folder;
  std::vector<Bookmark> set;
  {
    Stage stage;
    stage.shell.take(streams::one_run("lookahead"));
    stage.shell.show(ui::Screen::Live);
    stage.gui.frame(stage.shell);
    stage.shell.selection().locked = {1, 5, -1, -1};
    stage.shell.perform(ui::Action::Bookmark);
    stage.shell.selection().locked = {1, 9, -1, -1};
    stage.shell.perform(ui::Action::Mark);
    stage.shell.perform(ui::Action::KeepMark);
    stage.shell.perform(ui::Action::Mark);  // a temporary mark is not saved
    stage.shell.notes().run_names[1] = "first try";
    stage.shell.notes().run_notes[1] = "slow,\nbut correct";
    set.assign(stage.shell.notes().bookmarks.begin(), stage.shell.notes().bookmarks.begin() + 2);
    stage.save(folder / "mine.pdrun");
    ASSERT_TRUE(fs::exists(folder / "mine.pdrun")) << stage.shell.message();
  }
  {
    Stage stage;
    stage.shell.open(folder / "mine.pdrun");
    stage.settle();
    EXPECT_EQ(stage.shell.notes().bookmarks, set);
    EXPECT_EQ(stage.shell.notes().run_names[1], "first try");
    EXPECT_EQ(stage.shell.notes().run_notes[1], "slow,\nbut correct");
    stage.shell.selection().locked = {};
    stage.shell.perform(ui::Action::Jump1);
    EXPECT_EQ(stage.shell.selection().locked.step, 5);
    // Notes on an opened recording are saved when the window closes.
    stage.shell.selection().locked = {1, 12, -1, -1};
    stage.shell.perform(ui::Action::Bookmark);
  }
  Stage stage;
  stage.shell.open(folder / "mine.pdrun");
  stage.settle();
  ASSERT_EQ(stage.shell.notes().bookmarks.size(), 3u);
  EXPECT_EQ(stage.shell.notes().bookmarks[2].step, 12);
  // The recording itself is unchanged.
  engine::EventList events;
  const engine::RecordingReport report = engine::read_recording(folder / "mine.pdrun", events);
  EXPECT_TRUE(report.notices().empty());
  // A recording without notes shows none; after it the session shows its own notes.
  stage.shell.take(streams::one_run("ar"));
}

TEST(Notes, the_lens_of_a_recording_ends_with_it) {
  const Folder folder;
  const std::string with = folder / "with.pdrun", without = folder / "without.pdrun";
  {
    Stage stage;
    stage.shell.take(streams::one_run("lookahead"));
    stage.gui.frame(stage.shell);
    stage.save(without);
  }
  {
    Stage stage;
    stage.shell.take(streams::race({"ar", "jacobi"}));
    stage.shell.show(ui::Screen::Compare);
    stage.gui.frame(stage.shell);
    stage.shell.state<ui::TextView>().lens = ui::Lens::Cost;
    stage.shell.state<ui::TimelineView>().range.range0 = 3e6;
    stage.shell.state<ui::TimelineView>().range.range1 = 9e6;
    stage.save(with);
  }
  Stage stage;
  stage.shell.open(with);
  stage.settle();
  for (int i = 0; i < 3; ++i) stage.gui.frame(stage.shell);
  EXPECT_EQ(stage.shell.state<ui::TextView>().lens, ui::Lens::Cost);
  EXPECT_EQ(stage.shell.state<ui::TimelineView>().range.range1, 9e6) << "of the race";
  stage.shell.open(without);
  stage.settle();
  EXPECT_EQ(stage.shell.state<ui::TextView>().lens, ui::Lens::TokenStatus);
}

// Returns the node of a panel of the screen Live.
ImGuiID node_of(const char* panel) {
  const ImGuiWindow* window =
      ImGui::FindWindowByName(ui::window_name(ui::Screen::Live, panel, "").c_str());
  return window ? window->DockId : 0;
}

// Saves a session in which the user chose the layout "watching".
void save_watching(const std::string& recording) {
  Stage stage;
  stage.shell.take(streams::one_run("lookahead"));
  stage.shell.show(ui::Screen::Live);
  stage.frames();
  stage.shell.use_layout(ui::preset_named("watching"));
  stage.frames();
  stage.save(recording);
}

// Saves a recording without notes.
void save_plain(const std::string& recording) {
  engine::Recorder recorder(recording);
  for (const engine::Event& event : streams::one_run("jacobi")) recorder.push(event);
}

// Moves the panel Numbers to the place of the panel Text, which no preset does.
void move_a_panel(Stage& stage) {
  stage.shell.show(ui::Screen::Live);
  stage.frames();
  ImGui::DockBuilderDockWindow(ui::window_name(ui::Screen::Live, "numbers", "Numbers").c_str(),
                               node_of("text"));
  stage.frames();
  ASSERT_EQ(node_of("numbers"), node_of("text"));
}

// Saves a session in which the user dragged a panel to another place.
void save_moved(const std::string& recording) {
  Stage stage;
  stage.shell.take(streams::one_run("lookahead"));
  stage.shell.show(ui::Screen::Live);
  stage.frames();
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(3, 3);
  io.AddMouseButtonEvent(0, true);
  stage.frames();
  move_a_panel(stage);
  io.AddMouseButtonEvent(0, false);
  stage.frames();
  stage.save(recording);
}

TEST(Notes, panels_moved_by_hand_are_restored_and_undone) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun";
  save_moved(recording);
  EXPECT_THAT(read_file(ui::notes_path(recording)),
              HasSubstr("\npanels = [Window][live.numbers]\n"));
  const auto open = [&](Stage& stage) {
    stage.shell.show(ui::Screen::Live);
    stage.frames();
    EXPECT_NE(node_of("numbers"), node_of("text"));
    stage.open(recording);
  };
  {
    Stage stage(folder / "");
    open(stage);
    EXPECT_THAT(stage.shell.message(),
                HasSubstr("places of panels were saved with this recording. Ctrl+Z undoes it."));
    EXPECT_EQ(node_of("numbers"), node_of("text"));
  }
  EXPECT_EQ(ui::load_settings(folder / "").layout, "");
  {
    Stage stage;
    open(stage);
    EXPECT_EQ(node_of("numbers"), node_of("text")) << "nothing was changed";
    stage.shell.perform(ui::Action::Undo);
    stage.frames();
    EXPECT_NE(node_of("numbers"), node_of("text"));
    stage.shell.perform(ui::Action::Redo);
    stage.frames();
    EXPECT_EQ(node_of("numbers"), node_of("text"));
    stage.shell.perform(ui::Action::Undo);
    stage.frames();
  }
  Stage stage;
  open(stage);
  EXPECT_NE(node_of("numbers"), node_of("text")) << "as it was left";
}

TEST(Notes, moved_panels_of_a_recording_end_with_it) {
  const Folder folder;
  const std::string with = folder / "with.pdrun", without = folder / "without.pdrun";
  save_moved(with);
  save_plain(without);
  Stage stage;
  stage.shell.show(ui::Screen::Live);
  stage.frames();
  stage.open(with);
  EXPECT_EQ(node_of("numbers"), node_of("text"));
  stage.open(without);
  EXPECT_NE(node_of("numbers"), node_of("text"));
  EXPECT_FALSE(fs::exists(ui::notes_path(without)));
  stage.open(with);
  ui::load_layout(stage.shell.layout_to_save());
  EXPECT_NE(node_of("numbers"), node_of("text")) << "layout.ini keeps the user's own";
  // A preset that the user chooses replaces the moved panels of the recording.
  stage.shell.use_layout(ui::preset_named("standard"));
  stage.open(without);
  EXPECT_THAT(read_file(ui::notes_path(with)), testing::Not(HasSubstr("\npanels = ")));
  EXPECT_THAT(read_file(ui::notes_path(with)), HasSubstr("\nlayout = standard\n"));
}

TEST(Notes, damaged_places_of_panels_are_ignored) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun", path = ui::notes_path(recording);
  save_moved(recording);
  std::string notes = read_file(path);
  const std::size_t at = notes.find(" Split=");
  ASSERT_NE(at, std::string::npos);
  notes.erase(at, std::string_view(" Split=X").size());
  write_file(path, notes + "layout = watching\nrun 1 = a name\n");
  Stage stage;
  stage.shell.show(ui::Screen::Live);
  stage.frames();
  stage.open(recording);
  EXPECT_THAT(stage.shell.message(),
              HasSubstr("The saved places of panels cannot be used: a line is damaged: "));
  EXPECT_THAT(stage.shell.message(), HasSubstr("The layout Watching was saved"));
  EXPECT_EQ(node_of("numbers"), node_of("trajectory"));
  EXPECT_EQ(stage.shell.notes().run_names[1], "a name");
}

TEST(Notes, the_layout_of_a_recording_is_restored_and_undone) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun";
  save_watching(recording);
  EXPECT_THAT(read_file(ui::notes_path(recording)), HasSubstr("\nlayout = watching\n"));
  Stage stage;
  stage.shell.show(ui::Screen::Live);
  stage.frames();
  EXPECT_NE(node_of("numbers"), node_of("trajectory"));
  stage.open(recording);
  EXPECT_THAT(stage.shell.message(), HasSubstr("saved with this recording. Ctrl+Z undoes it."));
  EXPECT_EQ(stage.shell.settings().layout, "watching");
  EXPECT_EQ(node_of("numbers"), node_of("trajectory"));
  stage.shell.perform(ui::Action::Undo);
  stage.frames();
  EXPECT_EQ(stage.shell.settings().layout, "");
  EXPECT_NE(node_of("numbers"), node_of("trajectory"));
}

TEST(Notes, the_layout_of_a_recording_ends_with_it) {
  const Folder folder;
  const std::string with = folder / "with.pdrun", without = folder / "without.pdrun";
  save_watching(with);
  save_plain(without);
  Stage stage;
  const auto open = [&](const std::string& path) {
    stage.open(path);
    return std::string(ui::preset_named(stage.shell.settings().layout).word);
  };
  EXPECT_EQ(open(with), "watching");
  EXPECT_EQ(open(without), "standard");
  EXPECT_FALSE(fs::exists(ui::notes_path(without)));
  // A layout that the user chooses is saved with the recording, and stays.
  stage.shell.use_layout(ui::preset_named("numbers"));
  EXPECT_EQ(open(with), "watching");
  EXPECT_THAT(read_file(ui::notes_path(without)), HasSubstr("\nlayout = numbers\n"));
  EXPECT_EQ(open(without), "numbers");
}

TEST(Notes, moved_panels_return_after_a_recording_with_a_layout) {
  const Folder folder;
  const std::string with = folder / "with.pdrun", also = folder / "also.pdrun",
                    without = folder / "without.pdrun";
  save_watching(with);
  save_watching(also);
  save_plain(without);
  Stage stage;
  move_a_panel(stage);
  stage.open(with);
  EXPECT_NE(node_of("numbers"), node_of("text"));
  stage.open(also);
  EXPECT_EQ(node_of("numbers"), node_of("trajectory"));
  stage.open(without);
  EXPECT_EQ(node_of("numbers"), node_of("text"));
}

TEST(Notes, undoing_the_layout_of_a_recording_returns_moved_panels) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun";
  save_watching(recording);
  for (const ui::Screen screen : {ui::Screen::Live, ui::Screen::Compare, ui::Screen::Welcome}) {
    SCOPED_TRACE(ui::screen_name(screen));
    Stage stage;
    move_a_panel(stage);
    stage.shell.show(screen);
    stage.frames();
    stage.open(recording);
    ASSERT_EQ(stage.shell.screen(), ui::Screen::Live);
    EXPECT_NE(node_of("numbers"), node_of("text"));
    stage.shell.perform(ui::Action::Undo);
    stage.frames();
    EXPECT_EQ(stage.shell.settings().layout, "");
    EXPECT_EQ(node_of("numbers"), node_of("text"));
    stage.shell.perform(ui::Action::Redo);
    stage.frames();
    EXPECT_EQ(node_of("numbers"), node_of("trajectory"));
  }
}

TEST(Notes, the_layout_of_a_recording_is_not_saved_as_the_users) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun";
  save_watching(recording);
  write_file(folder / "settings.txt", "layout = numbers\nkey.undo = Ctrl+Shift+U\n");
  {
    Stage stage(folder / "");
    move_a_panel(stage);
    stage.open(recording);
    EXPECT_THAT(stage.shell.message(), HasSubstr("Ctrl+Shift+U undoes it."));
    EXPECT_EQ(stage.shell.settings().layout, "watching");
    EXPECT_EQ(ui::load_settings(folder / "").layout, "numbers") << "while it is shown";
    EXPECT_NE(node_of("numbers"), node_of("text"));
    ui::load_layout(stage.shell.layout_to_save());
    EXPECT_EQ(node_of("numbers"), node_of("text"));
  }
  EXPECT_EQ(ui::load_settings(folder / "").layout, "numbers");
  // A layout that the user chooses instead is the user's own.
  {
    Stage stage(folder / "");
    stage.open(recording);
    stage.shell.use_layout(ui::preset_named("standard"));
    stage.frames();
  }
  EXPECT_EQ(ui::load_settings(folder / "").layout, "standard");
}

TEST(Notes, the_layout_of_the_session_returns_without_a_message) {
  const Folder folder;
  save_plain(folder / "plain.pdrun");
  Stage stage;
  stage.shell.take(streams::one_run("lookahead"));
  stage.shell.use_layout(ui::preset_named("watching"));
  stage.frames();
  stage.open(folder / "plain.pdrun");
  stage.shell.use_layout(ui::preset_named("numbers"));
  stage.frames();
  stage.shell.take({engine::RunStarted{.run = 2, .model = 7, .decoder = "ar"}});
  stage.frames();
  EXPECT_EQ(stage.shell.settings().layout, "watching");
  EXPECT_THAT(stage.shell.message(), testing::Not(HasSubstr("saved with this recording")));
}

TEST(Notes, an_unknown_layout_is_kept_but_not_used) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun";
  save_watching(recording);
  write_file(ui::notes_path(recording), "decoscope notes 1\nlayout = of-a-newer-program\n");
  {
    Stage stage;
    stage.shell.open(recording);
    stage.settle();
    EXPECT_EQ(stage.shell.settings().layout, "");
    stage.shell.perform(ui::Action::Bookmark);
  }
  EXPECT_THAT(read_file(ui::notes_path(recording)), HasSubstr("\nlayout = of-a-newer-program\n"));
}

TEST(Notes, lens_and_measured_range_survive_saving) {
  const Folder folder;
  const std::string recording = folder / "mine.pdrun";
  {
    Stage stage;
    stage.shell.take(streams::one_run("lookahead"));
    stage.shell.show(ui::Screen::Live);
    stage.gui.frame(stage.shell);
    stage.shell.state<ui::TextView>().lens = ui::Lens::Cost;
    auto& view = stage.shell.state<ui::TimelineView>();
    view.clock = ui::ClockKind::Step;
    view.range.range0 = 7;
    view.range.range1 = 2.5;
    stage.save(recording);
    ASSERT_TRUE(fs::exists(ui::notes_path(recording))) << stage.shell.message();
  }
  Stage stage;
  stage.shell.open(recording);
  stage.settle();
  EXPECT_EQ(stage.shell.state<ui::TextView>().lens, ui::Lens::Cost);
  const auto& view = stage.shell.state<ui::TimelineView>();
  EXPECT_EQ(view.clock, ui::ClockKind::Step);
  EXPECT_EQ(view.range.range0, 7);
  EXPECT_EQ(view.range.range1, 2.5);
  // The view is saved again before another document is shown.
  stage.shell.state<ui::TextView>().lens = ui::Lens::TokenStatus;
  stage.shell.take({engine::RunStarted{.run = 2, .model = 7, .decoder = "ar"}});
  std::string why;
  const Notes left = ui::load_notes(recording, why);
  EXPECT_EQ(why, "");
  EXPECT_EQ(left.view.lens, ui::Lens::TokenStatus);
  EXPECT_THAT(left.view.ranges,
              testing::ElementsAre(ui::MeasuredRange{1, 0, ui::ClockKind::Step, 7, 2.5}));
  EXPECT_EQ(view.range.range0, view.range.range1) << "the range belongs to the recording";
}

TEST(Notes, each_run_and_the_race_keep_their_ranges) {
  const Folder folder;
  const std::string recording = folder / "race.pdrun";
  const auto range_of = [](Stage& stage, ui::Screen screen, engine::RunId run) {
    stage.shell.show(screen);
    stage.shell.selection().run = run;
    stage.gui.frame(stage.shell);
    return &stage.shell.state<ui::TimelineView>().range;
  };
  {
    Stage stage;
    stage.shell.take(streams::race({"ar", "jacobi"}));
    range_of(stage, ui::Screen::Live, 1)->range1 = 1e6;
    range_of(stage, ui::Screen::Live, 2)->range1 = 2e6;
    range_of(stage, ui::Screen::Compare, 2)->range1 = 3e6;
    stage.gui.frame(stage.shell);
    stage.save(recording);
  }
  Stage stage;
  stage.shell.open(recording);
  stage.settle();
  EXPECT_EQ(range_of(stage, ui::Screen::Live, 1)->range1, 1e6);
  EXPECT_EQ(range_of(stage, ui::Screen::Live, 2)->range1, 2e6);
  EXPECT_EQ(range_of(stage, ui::Screen::Compare, 2)->range1, 3e6);
}

TEST(Notes, notes_made_after_saving_the_live_session_are_saved_too) {
  const Folder folder;
  const std::string recording = folder / "live.pdrun";
  {
    Stage stage;
    stage.shell.take(streams::one_run("ar"));
    stage.gui.frame(stage.shell);
    stage.save(recording);
    EXPECT_FALSE(fs::exists(ui::notes_path(recording))) << "no notes yet";
    stage.shell.notes().run_names[1] = "the baseline";
  }
  std::string why;
  EXPECT_EQ(ui::load_notes(recording, why).run_names[1], "the baseline");
}

TEST(Notes, looking_at_a_recording_makes_no_file) {
  const Folder folder;
  {
    engine::Recorder recorder(folder / "other.pdrun");
    for (const engine::Event& event : streams::one_run("jacobi")) recorder.push(event);
  }
  Stage stage;
  stage.shell.open(folder / "other.pdrun");
  stage.settle();
  stage.shell.state<ui::TextView>().lens = ui::Lens::Age;
  stage.shell.state<ui::TimelineView>().range.range1 = 1e6;
  stage.gui.frame(stage.shell);
  stage.shell.perform(ui::Action::Undo);
  EXPECT_THAT(stage.shell.message(), HasSubstr("nothing to undo"));
  EXPECT_EQ(stage.shell.state<ui::TextView>().lens, ui::Lens::Age);
  stage.shell.open(folder / "none.pdrun");
  stage.settle();
  stage.shell.take({engine::RunStarted{.run = 2, .model = 7, .decoder = "ar"}});
  EXPECT_FALSE(fs::exists(ui::notes_path(folder / "other.pdrun")));
}

TEST(Notes, each_document_has_its_own) {
  const Folder folder;
  {
    engine::Recorder recorder(folder / "other.pdrun");
    for (const engine::Event& event : streams::one_run("jacobi")) recorder.push(event);
  }
  Stage stage;
  stage.shell.take(streams::one_run("lookahead"));
  stage.gui.frame(stage.shell);
  stage.shell.perform(ui::Action::Bookmark);
  ASSERT_EQ(stage.shell.notes().bookmarks.size(), 1u);
  const Bookmark own = stage.shell.notes().bookmarks[0];
  stage.shell.open(folder / "other.pdrun");
  stage.settle();
  EXPECT_TRUE(stage.shell.notes().bookmarks.empty());
  stage.shell.take({engine::RunStarted{.run = 2, .model = 7, .decoder = "ar"}});
  stage.gui.frame(stage.shell);
  ASSERT_EQ(stage.shell.notes().bookmarks.size(), 1u);
  EXPECT_EQ(stage.shell.notes().bookmarks[0], own);
  EXPECT_FALSE(fs::exists(ui::notes_path(folder / "other.pdrun")));
}

}  // namespace
