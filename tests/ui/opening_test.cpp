// Recordings that are read while the window draws: progress, cancelling, bad files.
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("decoscope-opening" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void record(const std::string& path, const std::vector<engine::Event>& events) {
  engine::Recorder recorder(path);
  for (const engine::Event& event : events) recorder.push(event);
}

struct Stage {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell{catalog, commands, ""};

  /// Draws until everything is read.
  void finish() {
    EXPECT_TRUE(waiting::until([&] { return !shell.reads(); }, [&] { gui.frame(shell); }));
  }
  const engine::Timeline& timeline() { return shell.session().shown().timeline; }
};

TEST(Opening, recording_is_drawn_while_it_is_read) {
  EXPECT_TRUE(waiting::in_the_midst_of(8'000, [](int n_tokens) {
    const Folder folder;
    const auto events = streams::one_run("jacobi", n_tokens);
    record(folder.file("long.pdrun"), events);
    Stage stage;
    stage.shell.open(folder.file("long.pdrun"));
    // The window's thread has read nothing yet.
    EXPECT_TRUE(stage.shell.reads());
    EXPECT_EQ(stage.timeline().n_events(), 0);
    bool grew = false;
    std::int64_t before = 0;
    waiting::until([&] { return !stage.shell.reads(); },
                   [&] {
                     stage.gui.frame(stage.shell);
                     const std::int64_t now = stage.timeline().n_events();
                     const bool in_part = before > 0 && now > before && now < std::ssize(events);
                     if (in_part && stage.shell.reads()) {
                       EXPECT_GE(stage.shell.reading(), 0);
                       EXPECT_LE(stage.shell.reading(), 1);
                     }
                     grew = grew || in_part;
                     before = now;
                   });
    EXPECT_EQ(stage.shell.reading(), -1);
    EXPECT_EQ(stage.timeline().n_events(), std::ssize(events));
    EXPECT_EQ(stage.shell.screen(), ui::Screen::Live);
    EXPECT_EQ(stage.shell.settings().recents.size(), 1u);
    return grew;
  })) << "no frame showed a part of the recording";
}

TEST(Recents, have_saved_and_opened_files_with_the_newest_first) {
  const Folder folder;
  const std::string opened = folder.file("opened.pdrun"), saved = folder.file("saved.pdrun");
  record(opened, streams::one_run("jacobi", 24));
  Stage stage;
  stage.shell.take(streams::one_run("ar", 24));
  stage.gui.frame(stage.shell);
  stage.shell.save(saved);
  EXPECT_TRUE(
      waiting::until([&] { return !stage.shell.saves(); }, [&] { stage.gui.frame(stage.shell); }));
  const std::vector<std::string>& recents = stage.shell.settings().recents;
  EXPECT_EQ(recents, std::vector{saved});
  stage.shell.open(opened);
  stage.finish();
  EXPECT_EQ(recents, (std::vector{opened, saved}));
  stage.shell.open(saved);
  stage.finish();
  EXPECT_EQ(recents, (std::vector{saved, opened})) << "each once";
  stage.shell.show(ui::Screen::Welcome);
  for (int i = 0; i < 4; ++i) stage.gui.frame(stage.shell);
  const std::string said = stage.gui.said(stage.shell);
  const std::size_t first = said.find("saved.pdrun"), second = said.find("opened.pdrun");
  EXPECT_LT(first, second);
  EXPECT_NE(second, std::string::npos);
}

TEST(Recents, a_missing_file_leaves_the_list_when_it_is_opened) {
  const Folder folder;
  const std::string kept = folder.file("kept.pdrun"), gone = folder.file("gone.pdrun"),
                    damaged = folder.file("damaged.pdrun");
  record(kept, streams::one_run("ar", 24));
  std::ofstream(damaged) << "no recording";
  Stage stage;
  stage.shell.settings().recents = {gone, damaged, kept};
  stage.shell.open(gone);
  stage.finish();
  EXPECT_NE(stage.shell.message().find("gone.pdrun"), std::string::npos) << stage.shell.message();
  EXPECT_EQ(stage.shell.settings().recents, (std::vector{damaged, kept}));
  stage.shell.open(damaged);
  stage.finish();
  EXPECT_EQ(stage.shell.settings().recents.size(), 2u) << "a file that exists stays in the list";
}

TEST(Opening, escape_stops_reading_and_keeps_events) {
  EXPECT_TRUE(waiting::in_the_midst_of(8'000, [](int n_tokens) {
    const Folder folder;
    const auto events = streams::one_run("jacobi", n_tokens);
    record(folder.file("long.pdrun"), events);
    Stage stage;
    stage.shell.open(folder.file("long.pdrun"));
    waiting::until([&] { return !stage.shell.reads() || stage.timeline().n_events() > 0; },
                   [&] { stage.gui.frame(stage.shell); });
    stage.shell.perform(ui::Action::Deselect);
    stage.finish();
    const std::int64_t n = stage.timeline().n_events();
    EXPECT_GT(n, 0);
    if (n == std::ssize(events)) return false;  // it was complete before it could be cancelled
    EXPECT_NE(stage.shell.message().find("cancelled"), std::string::npos) << stage.shell.message();
    EXPECT_FALSE(stage.timeline().notices().empty());
    return true;
  })) << "nothing was cancelled";
}

TEST(Opening, a_race_is_shown_on_the_compare_screen) {
  const Folder folder;
  record(folder.file("race.pdrun"), streams::race({"ar", "jacobi", "lookahead"}));
  Stage stage;
  stage.shell.open(folder.file("race.pdrun"));
  stage.finish();
  EXPECT_EQ(stage.shell.screen(), ui::Screen::Compare);
  EXPECT_EQ(stage.timeline().race(stage.shell.selection().race).size(), 3u);
  stage.shell.show(ui::Screen::Live);
  stage.shell.open(folder.file("race.pdrun"), true);
  stage.finish();
  EXPECT_EQ(stage.shell.screen(), ui::Screen::Live);
}

TEST(Opening, failed_open_keeps_the_shown_document) {
  const Folder folder;
  record(folder.file("good.pdrun"), streams::one_run("lookahead"));
  std::ofstream(folder.file("bad.pdrun")) << "{\"traceEvents\": []}";
  Stage stage;
  stage.shell.open(folder.file("good.pdrun"));
  stage.finish();
  const std::int64_t n = stage.timeline().n_events();
  for (const char* name : {"bad.pdrun", "absent.pdrun"}) {
    stage.shell.open(folder.file(name));
    stage.finish();
    EXPECT_NE(stage.shell.message().find(name), std::string::npos) << stage.shell.message();
    EXPECT_EQ(stage.timeline().n_events(), n);
    EXPECT_EQ(stage.shell.session().shown().source, folder.file("good.pdrun"));
  }
}

TEST(Opening, truncated_recording_is_shown_as_far_as_complete) {
  const Folder folder;
  const auto events = streams::race({"ar", "jacobi"});
  record(folder.file("cut.pdrun"), events);
  fs::resize_file(folder.file("cut.pdrun"), fs::file_size(folder.file("cut.pdrun")) * 2 / 3);
  Stage stage;
  stage.shell.open(folder.file("cut.pdrun"));
  stage.finish();
  EXPECT_EQ(stage.timeline().runs().size(), 2u);
  EXPECT_LT(stage.timeline().n_events(), std::ssize(events));
  ASSERT_FALSE(stage.timeline().notices().empty());
  EXPECT_NE(stage.timeline().notices().front().text.find("incomplete"), std::string::npos);
}

TEST(Opening, second_recording_replaces_the_first) {
  const Folder folder;
  record(folder.file("long.pdrun"), streams::one_run("jacobi", 30'000));
  record(folder.file("short.pdrun"), streams::one_run("ar", 8));
  Stage stage;
  stage.shell.open(folder.file("long.pdrun"));
  stage.gui.frame(stage.shell);
  stage.shell.open(folder.file("short.pdrun"));
  stage.finish();
  EXPECT_EQ(stage.timeline().runs().size(), 1u);
  EXPECT_EQ(stage.timeline().runs().front().started.decoder, "ar");
  EXPECT_EQ(stage.shell.session().shown().source, folder.file("short.pdrun"));
}

}  // namespace
