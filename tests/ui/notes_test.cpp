// Bookmarks and names of runs, saved beside a recording.
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
      {{1, "plain"}, {2, "with = and, commas"}}};
}

TEST(Notes, text_parses_to_the_same_notes) {
  Notes read;
  std::string why;
  EXPECT_TRUE(from_text(to_text(some_notes()), read, why)) << why;
  EXPECT_EQ(read, some_notes());
}

TEST(Notes, lines_of_a_newer_program_are_kept) {
  Notes read;
  std::string why;
  EXPECT_TRUE(from_text("decoscope notes 2\nlens = probability\n\nrun 1 = a\n", read, why)) << why;
  EXPECT_EQ(read.run_names, (std::map<engine::RunId, std::string>{{1, "a"}}));
  EXPECT_THAT(to_text(read), HasSubstr("\nlens = probability\n"));
}

TEST(Notes, unreadable_notes_are_set_aside) {
  const Folder folder;
  const std::string recording = folder / "run.pdrun", path = ui::notes_path(recording);
  for (const char* text :
       {"", "{\"json\": 1}", "decoscope notes 0\n", "decoscope notes 1\nbookmark = kept, run x\n",
        "decoscope notes 1\nbookmark = kept, run 1, step 2, nan ns\n",
        "decoscope notes 1\nbookmark = kept, run 1, step -7, 5 ns\n",
        "decoscope notes 1\nsomething\n"}) {
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

TEST(Notes, empty_notes_are_not_written) {
  const Folder folder;
  const std::string recording = folder / "run.pdrun";
  EXPECT_EQ(ui::save_notes({}, recording), "");
  EXPECT_FALSE(fs::exists(ui::notes_path(recording)));
  EXPECT_EQ(save_notes(some_notes(), recording), "");
  EXPECT_EQ(ui::save_notes({}, recording), "");  // the last bookmark was removed
  std::string why;
  EXPECT_TRUE(ui::load_notes(recording, why).empty());
  EXPECT_NE(save_notes(some_notes(), folder / "no/such/folder/run.pdrun"), "");
}

struct Stage {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell{catalog, commands, ""};

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
};

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
