// However the window ends, the engine's thread ends before it: no way out leaves a thread behind
// that ends the process by std::terminate.
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/cli/commands.h"
#include "app/window/engine_thread.h"
#include "engine/event/queue.h"
#include "kernels/error.h"
#include "tests/assets_folder.h"
#include "tests/needs.h"
#include "tests/ui/display.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/shell/window.h"

namespace {

namespace fs = std::filesystem;

fs::path model() {
  return fs::path(assets_folder()) / "models/demo-target";
}

// A run that goes on for as long as it is let.
engine::StartRun long_run() {
  engine::StartRun start;
  start.model = model().string();
  start.prompt = "USER: Anna has 11 stickers. ASSISTANT:";
  start.max_tokens = 4000;
  start.ignore_eos = true;
  start.lanes.push_back({"ar", {}});
  return start;
}

struct Scene {
  Scene()
      : thread(
            model().parent_path().parent_path().string(), "", {.n_threads = 1}, commands, events) {}

  engine::EventQueue events;
  engine::CommandQueue commands;
  app::EngineThread thread;  // ends before its queues
};

bool has_model() {
  std::error_code error;
  return fs::exists(model() / "config.json", error);
}

TEST(WindowEnds, what_throws_while_the_window_is_made_ends_the_engine_at_work) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  if (!has_model()) FAIL() << "the bundled model demo-target is absent";
  const auto shell_made = [] { throw std::runtime_error("no room for a window"); };
  for (const bool early : {true, false}) {
    Scene scene;
    scene.commands.push(long_run());
    // At work: a step was told.
    bool steps = false;
    for (int i = 0; i < 6000 && !steps; ++i) {
      usleep(10'000);
      for (const engine::Event& event : scene.events.take())
        steps = steps || std::holds_alternative<engine::StepEnded>(event);
    }
    ASSERT_TRUE(steps);
    ui::WindowOptions options;
    options.config_dir = "-";
    options.hooks.draw_always = true;
    if (early)
      options.hooks.shell_made = [&](ui::Shell&) { shell_made(); };
    else
      options.hooks.frame_shown = shell_made;
    EXPECT_THROW(ui::run_window(scene.events, scene.commands, {}, options), std::runtime_error);
  }
}

TEST(WindowEnds, a_display_that_is_not_there_ends_the_engine_at_work) {
  if (!has_model()) FAIL() << "the bundled model demo-target is absent";
  const char* had = std::getenv("DISPLAY");
  const std::string before = had ? had : "";
  setenv("DISPLAY", ":4242", 1);
  {
    Scene scene;
    scene.commands.push(long_run());
    EXPECT_THROW(ui::run_window(scene.events, scene.commands, {}, {.config_dir = "-"}),
                 kernels::Error);
  }
  if (had)
    setenv("DISPLAY", before.c_str(), 1);
  else
    unsetenv("DISPLAY");
}

// The engine hangs where it tells of a command that failed, as it would in a call of a GPU.
struct HangingScene : Scene {
  HangingScene() {
    events.on_arrival([this] {
      hangs.set_value();
      never.get_future().wait();
    });
    commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
    hangs.get_future().wait();
  }
  std::promise<void> hangs, never;
};

TEST(WindowEnds, CU12_an_engine_that_hangs_is_left_and_the_code_is_a_devices) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends = [] {
    HangingScene scene;
    scene.thread.end_within(std::chrono::milliseconds(50));
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(5), "the GPU did not respond");
}

TEST(WindowEnds, CU12_however_the_window_ends_nobody_waits_for_ever_for_a_load_that_hangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends = [](const std::function<int()>& window) {
    HangingScene scene;
    scene.thread.beside(window, std::chrono::milliseconds(50));
  };
  const auto fails = []() -> int { throw std::runtime_error("no room for a window"); };
  EXPECT_EXIT(ends([] { return 0; }), testing::ExitedWithCode(5), "the engine did not respond");
  EXPECT_EXIT(ends([] { return 5; }), testing::ExitedWithCode(5), "the GPU did not respond");
  EXPECT_EXIT(ends(fails), testing::ExitedWithCode(5),
              "no room for a window\ndecoscope: window: the engine did not respond");
}

TEST(WindowEnds, an_engine_that_answers_leaves_the_window_its_own_end) {
  {
    Scene scene;
    scene.commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
    scene.thread.beside([] { return 5; }, std::chrono::minutes(2));
    scene.thread.end_within(std::chrono::minutes(2));  // once more, as where exit() comes then
  }
  Scene failing;
  EXPECT_THROW(failing.thread.beside([]() -> int { throw std::runtime_error("no room"); },
                                     std::chrono::minutes(2)),
               std::runtime_error);
}

// What throws here is the window's bell, in the midst of telling a failure.
TEST(WindowEnds, TH06_an_engine_that_ends_by_an_exception_says_so_and_refuses_what_comes_then) {
  std::atomic<int> n_rung = 0;
  Scene scene;
  scene.events.on_arrival([&] {
    if (n_rung++ == 0) throw std::runtime_error("no bell");
  });
  std::vector<engine::RunFailed> failed;
  const auto until_failed = [&](std::size_t n) {
    for (int i = 0; i < 6000 && failed.size() < n; ++i) {
      usleep(10'000);
      for (const engine::Event& event : scene.events.take())
        if (const auto* one = std::get_if<engine::RunFailed>(&event)) failed.push_back(*one);
    }
    return failed.size() == n;
  };
  scene.commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
  ASSERT_TRUE(until_failed(2)) << "the command, and the engine";
  EXPECT_EQ(failed[1].run, 0u);
  EXPECT_EQ(failed[1].code, 70);
  EXPECT_NE(failed[1].message.find("no bell"), std::string::npos) << failed[1].message;
  scene.commands.push(engine::Hold{true});
  scene.commands.push(long_run());
  ASSERT_TRUE(until_failed(3));
  EXPECT_EQ(failed[2].message, failed[1].message);
  scene.thread.end_within(std::chrono::minutes(2));
}

TEST(WindowEnds, an_engine_that_answers_in_time_is_ended_as_ever) {
  Scene scene;
  scene.commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
  scene.thread.end_within(std::chrono::minutes(2));
}

}  // namespace
