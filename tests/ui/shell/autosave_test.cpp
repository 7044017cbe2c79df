// The autosave of the live session, the question before closing, and the session that a crash leaves.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "tests/support/display.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/ui/support/headless.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/waiting.h"
#include "ui/files/autosave.h"
#include "ui/files/settings.h"
#include "ui/shell/window.h"

namespace {

namespace fs = std::filesystem;
using engine::test::Folder;
using testing::HasSubstr;
using testing::Not;

struct Stage {
  headless::Headless gui;
  engine::CommandQueue commands;
  ui::Catalog catalog = streams::catalog();
  ui::Shell shell;

  explicit Stage(const Folder& folder, const std::string& settings = "")
      : shell(catalog, commands, settings, folder / "state") {}
  std::string said() {
    for (int i = 0; i < 3; ++i) gui.frame(shell);
    return gui.said(shell);
  }
  /// Clicks an item by moving the keyboard focus to it.
  void press(ImGuiID id) {
    ImGui::ActivateItemByID(id);
    for (int i = 0; i < 3; ++i) gui.frame(shell);
  }
  void press(const char* window, const char* label) {
    said();
    const ImGuiWindow* shown = ImGui::FindWindowByName(window);
    ASSERT_NE(shown, nullptr) << window;
    press(ImHashStr(label, 0, shown->ID));
  }
};

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) files.push_back(entry.path());
  return files;
}

std::int64_t n_events_in(const fs::path& path) {
  engine::EventList list;
  return engine::read_recording(path.string(), list).n_events;
}

// Returns the beginning of a run.
std::vector<engine::Event> unfinished() {
  std::vector<engine::Event> events = streams::one_run("jacobi");
  events.resize(events.size() / 2);
  return events;
}

TEST(Autosave, begins_with_the_first_run_and_has_every_event) {
  const Folder folder;
  const auto events = streams::one_run("jacobi");
  {
    ui::Autosave autosave(folder.path());
    EXPECT_EQ(autosave.push(engine::Sampled{}), std::nullopt);
    EXPECT_TRUE(files_in(folder.path()).empty()) << "there is nothing to lose yet";
    for (const engine::Event& event : events) EXPECT_EQ(autosave.push(event), std::nullopt);
    EXPECT_TRUE(ui::unsaved_sessions(folder.path()).empty()) << "its window still runs";
  }
  ASSERT_EQ(files_in(folder.path()).size(), 1u);
  engine::Timeline live, again;
  for (const engine::Event& event : events) live.apply(event);
  engine::load_recording(files_in(folder.path())[0].string(), again);
  ASSERT_EQ(again.runs().size(), 1u);
  EXPECT_EQ(again.runs()[0].tokens.size(), live.runs()[0].tokens.size());
  EXPECT_NE(again.model(1), nullptr) << "the model was loaded before the run";
}

TEST(Autosave, discarded_session_leaves_no_file) {
  const Folder folder;
  ui::Autosave autosave(folder.path());
  for (const engine::Event& event : unfinished()) autosave.push(event);
  autosave.discard();
  EXPECT_TRUE(files_in(folder.path()).empty());
  EXPECT_EQ(autosave.push(unfinished().back()), std::nullopt);
}

TEST(Autosave, unwritable_folder_is_reported_once) {
  const Folder folder;
  engine::test::write_file(folder / "file", "no folder");
  ui::Autosave autosave(folder / "file/below");
  int n_reports = 0;
  for (const engine::Event& event : unfinished()) n_reports += autosave.push(event).has_value();
  EXPECT_EQ(n_reports, 1);
}

TEST(Closing, window_without_runs_closes_at_once) {
  const Folder folder;
  Stage stage(folder);
  stage.shell.take({streams::story().model});
  EXPECT_TRUE(stage.shell.may_close());
}

TEST(Closing, unsaved_run_is_asked_about) {
  const Folder folder;
  Stage stage(folder);
  stage.shell.take(unfinished());
  EXPECT_FALSE(stage.shell.may_close());
  EXPECT_THAT(stage.said(), HasSubstr("1 run of this session is not saved. A run is decoding"));
  EXPECT_FALSE(stage.shell.may_close()) << "a second click on the window's button is no answer";
  stage.shell.perform(ui::Action::Deselect);
  EXPECT_THAT(stage.said(), Not(HasSubstr("before closing")));
  EXPECT_FALSE(stage.shell.wants_to_close());
}

TEST(Closing, discard_closes_and_removes_the_autosave) {
  const Folder folder;
  {
    Stage stage(folder);
    stage.shell.take(streams::one_run("jacobi"));
    EXPECT_FALSE(stage.shell.may_close());
    EXPECT_EQ(files_in(folder / "state").size(), 1u);
    stage.press("##close", "###discard_close");
    EXPECT_TRUE(stage.shell.wants_to_close());
  }
  EXPECT_TRUE(files_in(folder / "state").empty());
}

TEST(Closing, save_and_close_stops_the_run_and_writes_it) {
  const Folder folder;
  setenv("XDG_DATA_HOME", folder.path().c_str(), 1);
  setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1);
  {
    Stage stage(folder);
    stage.shell.take(unfinished());
    EXPECT_FALSE(stage.shell.may_close());
    stage.press("##close", "###save_close");
    const auto command = stage.commands.try_take();
    ASSERT_TRUE(command && std::holds_alternative<engine::StopRun>(*command));
    EXPECT_FALSE(stage.shell.saves()) << "the engine has not answered yet";
    stage.shell.take(
        {engine::RunFinished{.t = 1'000'000'000'000, .run = 1, .stop_reason = "stopped"}});
    EXPECT_TRUE(waiting::until([&] { return stage.shell.wants_to_close(); },
                               [&] { stage.gui.frame(stage.shell); }));
  }
  unsetenv("XDG_DATA_HOME");
  unsetenv("XDG_CONFIG_HOME");
  engine::Timeline saved;
  engine::load_recording(folder / "decoscope/session.pdrun", saved);
  ASSERT_EQ(saved.runs().size(), 1u);
  EXPECT_TRUE(saved.runs()[0].finished.has_value());
  EXPECT_TRUE(files_in(folder / "state").empty()) << "the user's file has the session";
}

TEST(Closing, saved_session_closes_without_a_question) {
  const Folder folder;
  Stage stage(folder);
  stage.shell.take(streams::one_run("jacobi"));
  stage.shell.save(folder / "mine.pdrun");
  ASSERT_TRUE(
      waiting::until([&] { return !stage.shell.saves(); }, [&] { stage.gui.frame(stage.shell); }));
  EXPECT_TRUE(stage.shell.may_close());
  EXPECT_EQ(stage.shell.settings().recents, std::vector<std::string>{folder / "mine.pdrun"});
  stage.shell.take({engine::Agreement{.t = 2'000'000'000'000, .run = 1}});
  EXPECT_FALSE(stage.shell.may_close()) << "the file lacks the newest event";
}

// Ends a session as a crash does: the shell never learns that the user wants to close.
std::int64_t crashed(const Folder& folder) {
  Stage stage(folder);
  stage.shell.take(unfinished());
  return std::ssize(unfinished());
}

TEST(Restoring, session_of_a_crash_is_offered_and_opened) {
  const Folder folder;
  const std::int64_t n = crashed(folder);
  ASSERT_EQ(files_in(folder / "state").size(), 1u);
  EXPECT_EQ(n_events_in(files_in(folder / "state")[0]), n);
  Stage stage(folder);
  EXPECT_EQ(stage.shell.screen(), ui::Screen::Welcome);
  ASSERT_EQ(stage.shell.unsaved_sessions().size(), 1u);
  EXPECT_THAT(stage.said(), HasSubstr("Restore the session of "));
  EXPECT_TRUE(ui::unsaved_sessions(folder / "state").empty()) << "another window does not offer it";
  stage.press("##left", "###open_left");
  ASSERT_TRUE(
      waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); }));
  EXPECT_EQ(stage.shell.session().shown().timeline.n_events(), n);
  EXPECT_THAT(stage.said(), Not(HasSubstr("Restore the session")));
  EXPECT_TRUE(stage.shell.settings().recents.empty()) << "the file is not the user's";
  // After it is saved, the autosaved file is removed and the window shows the saved one.
  stage.shell.save(folder / "kept.pdrun");
  ASSERT_TRUE(
      waiting::until([&] { return !stage.shell.saves(); }, [&] { stage.gui.frame(stage.shell); }));
  EXPECT_EQ(stage.shell.session().shown().source, folder / "kept.pdrun");
  EXPECT_TRUE(files_in(folder / "state").empty());
  EXPECT_EQ(n_events_in(folder / "kept.pdrun"), n);
}

TEST(Restoring, opened_session_is_offered_again_until_saved) {
  const Folder folder;
  crashed(folder);
  {
    Stage stage(folder);
    stage.press("##left", "###open_left");
    waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); });
  }
  Stage stage(folder);
  EXPECT_EQ(stage.shell.unsaved_sessions().size(), 1u);
}

TEST(Restoring, discarded_session_is_removed) {
  const Folder folder;
  crashed(folder);
  Stage stage(folder);
  stage.press("##left", "###discard_left");
  EXPECT_TRUE(stage.shell.unsaved_sessions().empty());
  EXPECT_TRUE(files_in(folder / "state").empty());
}

TEST(Settings, are_written_when_they_change) {
  const Folder folder;
  Stage stage(folder, folder / "config");
  stage.said();
  stage.shell.set_theme(ui::ThemeName::Light);
  stage.gui.frame(stage.shell);
  EXPECT_EQ(ui::load_settings(folder / "config").theme, ui::ThemeName::Light);
  EXPECT_EQ(files_in(folder / "config").size(), 1u) << "no temporary file is left";
}

// Returns the text of the file's session after the byte at `share` of the file has changed.
std::string said_of_flipped(const Folder& folder, double share) {
  const std::string path = folder / "run.pdrun";
  {
    engine::Recorder recorder(path);
    for (const engine::Event& event : streams::one_run("jacobi")) recorder.push(event);
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(share * static_cast<double>(fs::file_size(path)));
  file.seekg(at);
  const char old = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(old ^ 0x10));
  file.close();
  Stage stage(folder);
  stage.shell.open(path);
  waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); });
  return stage.said();
}

TEST(Opening, damaged_recording_has_a_bar_that_reports_it) {
  const Folder folder;
  EXPECT_THAT(said_of_flipped(folder, 0.5),
              HasSubstr("This recording is damaged: 1 event left out"));
}

TEST(Opening, message_of_one_file_ends_when_another_is_opened) {
  const Folder folder;
  {
    engine::Recorder recorder(folder / "good.pdrun");
    for (const engine::Event& event : streams::one_run("ar")) recorder.push(event);
  }
  engine::test::write_file(folder / "bad.pdrun", "not a recording");
  Stage stage(folder);
  stage.shell.open(folder / "bad.pdrun");
  waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); });
  EXPECT_THAT(stage.said(), HasSubstr("bad.pdrun: "));
  stage.shell.open(folder / "good.pdrun");
  waiting::until([&] { return !stage.shell.reads(); }, [&] { stage.gui.frame(stage.shell); });
  EXPECT_THAT(stage.said(), Not(HasSubstr("bad.pdrun")));
}

// Writes a picture of a window after `made` has changed its content. @return the bytes of the picture
std::string picture_of(const Folder& folder,
                       const std::string& name,
                       const std::string& screen,
                       const std::function<void(ui::Shell&)>& made) {
  const char* wanted = std::getenv("DECOSCOPE_PICTURES");
  engine::EventQueue events;
  engine::CommandQueue commands;
  ui::WindowOptions options{.screen = screen, .config_dir = folder / "config", .width = 1280};
  options.height = 720;
  options.screenshot = (wanted ? std::string(wanted) : folder.path()) + "/" + name + ".png";
  options.screenshot_frames = 8;
  options.hooks.shell_made = made;
  EXPECT_EQ(ui::run_window(events, commands, streams::catalog(), options), 0);
  return engine::test::read_file(options.screenshot);
}

TEST(Closing, question_and_offer_have_pictures) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const Folder folder;
  std::vector<std::string> pictures;
  pictures.push_back(picture_of(folder, "closing", "live", [](ui::Shell& shell) {
    shell.take(unfinished());
    EXPECT_FALSE(shell.may_close());
  }));
  // The first window ended without an answer, so the second offers its session.
  pictures.push_back(picture_of(folder, "restoring", "welcome", [](ui::Shell& shell) {
    EXPECT_EQ(shell.unsaved_sessions().size(), 1u);
  }));
  for (const std::string& png : pictures) EXPECT_GT(png.size(), 20'000u);
}

}  // namespace
