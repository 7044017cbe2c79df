// Recordings written beside the window: the same events, progress, giving up, what waits meanwhile.
#include "ui/saving.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recorder.h"
#include "engine/event/recording.h"
#include "engine/event/serialise.h"
#include "headless.h"
#include "streams.h"
#include "tests/engine/event/files.h"

namespace {

namespace fs = std::filesystem;
using engine::test::Folder;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::string bytes_of(const std::string& path) {
  engine::EventList list;
  engine::read_recording(path, list);
  std::string bytes;
  for (const engine::Event& event : list.events) encode(event, bytes);
  return bytes;
}

std::string recorded(const Folder& folder, const std::vector<engine::Event>& events) {
  engine::Recorder recorder(folder / "long.pdrun");
  for (const engine::Event& event : events) recorder.push(event);
  recorder.close();
  return recorder.path();
}

TEST(Saving, a_recording_saved_again_holds_the_same_events) {
  const Folder folder;
  const std::string source = recorded(folder, streams::race({"ar", "jacobi", "lookahead"}));
  ui::Saving saving(source, folder / "copy.pdrun");
  const std::string copy = saving.result();
  EXPECT_EQ(copy, folder / "copy.pdrun");
  EXPECT_EQ(bytes_of(copy), bytes_of(source));
  EXPECT_DOUBLE_EQ(saving.fraction(), 1);
}

TEST(Saving, given_up_it_leaves_no_file) {
  const Folder folder;
  const std::string source = recorded(folder, streams::one_run("jacobi", 30'000));
  ui::Saving saving(source, folder / "copy.pdrun");
  while (saving.fraction() == 0 && !saving.ended()) std::this_thread::sleep_for(1ms);
  saving.give_up();
  EXPECT_THROW(
      {
        try {
          saving.result();
        } catch (const engine::Error& error) {
          EXPECT_EQ(error.code(), engine::ErrorCode::Cancelled);
          throw;
        }
      },
      engine::Error);
  EXPECT_FALSE(fs::exists(folder / "copy.pdrun"));
}

TEST(Saving, let_go_of_it_writes_to_the_end) {
  const Folder folder;
  engine::Timeline timeline;
  const auto events = streams::one_run("jacobi", 3000);
  for (const engine::Event& event : events) timeline.apply(event);
  { const ui::Saving saving(timeline, folder / "whole.pdrun"); }
  engine::Timeline again;
  const engine::RecordingReport report = engine::load_recording(folder / "whole.pdrun", again);
  EXPECT_TRUE(report.closed);
  EXPECT_EQ(again.n_events(), timeline.n_events());
}

struct Stage {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell{catalog, commands, ""};
};

TEST(Saving, the_window_draws_on_while_a_recording_is_written) {
  const Folder folder;
  Stage stage;
  stage.shell.take(streams::one_run("jacobi", 30'000));
  stage.shell.show(ui::Screen::Live);
  stage.gui.frame(stage.shell);
  const std::int64_t before = stage.shell.session().live().timeline.n_events();
  stage.shell.save(folder / "long.pdrun");
  EXPECT_TRUE(stage.shell.saves()) << "the window waited for the file";
  EXPECT_TRUE(stage.shell.animates());
  // What the engine tells meanwhile is shown after it, and no part of the file.
  stage.shell.take({engine::Notice{.t = 1, .text = "meanwhile"}});
  int n_frames = 0;
  for (; stage.shell.saves() && n_frames < 20'000; ++n_frames) {
    EXPECT_EQ(stage.shell.session().live().timeline.n_events(), before);
    stage.gui.frame(stage.shell);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(stage.shell.saves());
  EXPECT_GT(n_frames, 1);
  EXPECT_EQ(stage.shell.session().live().timeline.n_events(), before + 1);
  EXPECT_THAT(stage.shell.message(), HasSubstr("Saved long.pdrun"));
  engine::Timeline again;
  engine::load_recording(folder / "long.pdrun", again);
  EXPECT_EQ(again.n_events(), before);
}

TEST(Saving, escape_gives_a_save_up) {
  const Folder folder;
  const std::string source = recorded(folder, streams::one_run("jacobi", 30'000));
  Stage stage;
  stage.shell.open(source);
  while (stage.shell.reads()) stage.gui.frame(stage.shell);
  stage.shell.save(folder / "copy.pdrun");
  stage.shell.perform(ui::Action::Deselect);
  for (int i = 0; stage.shell.saves() && i < 20'000; ++i) {
    stage.gui.frame(stage.shell);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_THAT(stage.shell.message(), HasSubstr("not saved"));
  EXPECT_FALSE(fs::exists(folder / "copy.pdrun"));
}

TEST(Saving, a_folder_that_refuses_is_said) {
  const Folder folder;
  engine::test::write_file(folder / "file", "no folder");
  Stage stage;
  stage.shell.take(streams::one_run("ar"));
  stage.shell.save(folder / "file/below.pdrun");
  for (int i = 0; stage.shell.saves() && i < 20'000; ++i) stage.gui.frame(stage.shell);
  EXPECT_THAT(stage.shell.message(), HasSubstr("below.pdrun"));
}

}  // namespace
