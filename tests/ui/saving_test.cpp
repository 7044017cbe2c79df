// Recordings that are written while the window draws: the same events, progress, cancelling, delayed events.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "engine/event/serialise.h"
#include "tests/support/files.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"
#include "ui/files/saving.h"

namespace {

namespace fs = std::filesystem;
using engine::test::Folder;
using testing::HasSubstr;

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

TEST(Saving, second_save_has_the_same_events) {
  const Folder folder;
  const std::string source = recorded(folder, streams::race({"ar", "jacobi", "lookahead"}));
  ui::Saving saving(source, folder / "copy.pdrun");
  const std::string copy = saving.result();
  EXPECT_EQ(copy, folder / "copy.pdrun");
  EXPECT_EQ(bytes_of(copy), bytes_of(source));
  EXPECT_DOUBLE_EQ(saving.fraction(), 1);
}

TEST(Saving, cancelled_save_leaves_no_file) {
  EXPECT_TRUE(waiting::in_the_midst_of(4'000, [](int n_tokens) {
    const Folder folder;
    const std::string copy = folder / "copy.pdrun";
    ui::Saving saving(recorded(folder, streams::one_run("jacobi", n_tokens)), copy);
    waiting::until([&] { return saving.fraction() > 0 || saving.ended(); }, [] {});
    saving.give_up();
    try {
      EXPECT_EQ(saving.result(), copy);
      EXPECT_TRUE(fs::exists(copy)) << "it was complete before it could be cancelled";
      return false;
    } catch (const engine::Error& error) {
      EXPECT_EQ(error.code(), engine::ErrorCode::Cancelled);
      EXPECT_FALSE(fs::exists(copy));
      return true;
    }
  })) << "nothing was cancelled";
}

TEST(Saving, destructor_finishes_the_file) {
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

// Draws frames until the recording is saved. @return the number of frames
int draw_until_saved(Stage& stage) {
  int n_frames = 0;
  EXPECT_TRUE(waiting::until([&] { return !stage.shell.saves(); },
                             [&] {
                               stage.gui.frame(stage.shell);
                               ++n_frames;
                             }));
  return n_frames;
}

TEST(Saving, window_draws_while_saving) {
  EXPECT_TRUE(waiting::in_the_midst_of(4'000, [](int n_tokens) {
    const Folder folder;
    Stage stage;
    stage.shell.take(streams::one_run("jacobi", n_tokens));
    stage.shell.show(ui::Screen::Live);
    stage.gui.frame(stage.shell);
    const engine::Timeline& live = stage.shell.session().live().timeline;
    const std::int64_t before = live.n_events();
    stage.shell.save(folder / "long.pdrun");
    EXPECT_TRUE(stage.shell.saves());
    EXPECT_TRUE(stage.shell.animates());
    // Events that arrive meanwhile are shown afterwards and are not part of the file.
    stage.shell.take({engine::Notice{.t = 1, .text = "meanwhile"}});
    EXPECT_EQ(live.n_events(), before);
    const int n_frames = draw_until_saved(stage);
    EXPECT_EQ(live.n_events(), before + 1);
    EXPECT_THAT(stage.shell.message(), HasSubstr("Saved long.pdrun"));
    engine::Timeline again;
    engine::load_recording(folder / "long.pdrun", again);
    EXPECT_EQ(again.n_events(), before);
    return n_frames > 2;
  })) << "the window drew no frame while the file was written";
}

TEST(Saving, escape_cancels_a_save) {
  EXPECT_TRUE(waiting::in_the_midst_of(4'000, [](int n_tokens) {
    const Folder folder;
    const std::string source = recorded(folder, streams::one_run("jacobi", n_tokens));
    Stage stage;
    stage.shell.open(source);
    waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); });
    stage.shell.save(folder / "copy.pdrun");
    stage.shell.perform(ui::Action::Deselect);
    draw_until_saved(stage);
    const bool given_up = stage.shell.message().find("not saved") != std::string::npos;
    EXPECT_EQ(fs::exists(folder / "copy.pdrun"), !given_up) << stage.shell.message();
    return given_up;
  })) << "nothing was cancelled";
}

TEST(Saving, unwritable_folder_is_reported) {
  const Folder folder;
  engine::test::write_file(folder / "file", "no folder");
  Stage stage;
  stage.shell.take(streams::one_run("ar"));
  stage.shell.save(folder / "file/below.pdrun");
  draw_until_saved(stage);
  EXPECT_THAT(stage.shell.message(), HasSubstr("below.pdrun"));
}

}  // namespace
