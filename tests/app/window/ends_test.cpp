// However the window ends, the engine's thread ends before it; a thread that remained would call
// std::terminate.
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
#include "tests/support/assets_folder.h"
#include "tests/support/display.h"
#include "tests/support/needs.h"
#include "ui/shell/catalog.h"
#include "ui/shell/shell.h"
#include "ui/shell/window.h"

namespace {

namespace fs = std::filesystem;

fs::path model() {
  return fs::path(assets_folder()) / "models/demo-target";
}

// A run that ends only when it is stopped.
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

TEST(WindowEnds, an_exception_during_setup_ends_the_engine) {
  NEEDS(display::ready(), "no display and no Xvfb");
  if (!has_model()) FAIL() << "the bundled model demo-target is absent";
  const auto shell_made = [] { throw std::runtime_error("no room for a window"); };
  for (const bool early : {true, false}) {
    Scene scene;
    scene.commands.push(long_run());
    // A reported step shows that the engine is working.
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

TEST(WindowEnds, a_missing_display_ends_the_engine) {
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

// The engine hangs while it reports a failed command, like in a GPU call that does not return.
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

// CU12.
TEST(WindowEnds, a_hanging_engine_is_abandoned_with_exit_code_5) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends = [] {
    HangingScene scene;
    scene.thread.end_within(std::chrono::milliseconds(50));
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(5), "the GPU did not respond");
}

// CU12.
TEST(WindowEnds, closing_never_waits_for_a_hanging_load) {
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

TEST(WindowEnds, a_responding_engine_keeps_the_windows_exit_code) {
  {
    Scene scene;
    scene.commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
    bool shown = false;
    scene.thread.beside([&] { return shown = true, 5; }, std::chrono::minutes(2));
    EXPECT_TRUE(shown);
    scene.thread.end_within(std::chrono::minutes(2));  // again, as in exit()
  }
  Scene failing;
  EXPECT_THROW(failing.thread.beside([]() -> int { throw std::runtime_error("no room"); },
                                     std::chrono::minutes(2)),
               std::runtime_error);
}

// The exception comes from the window's wake-up call, during the report of a failure.
// TH06.
TEST(WindowEnds, an_engine_exception_is_shown_and_commands_are_refused) {
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
  ASSERT_TRUE(until_failed(2)) << "failures of the command and of the engine";
  EXPECT_EQ(failed[1].run, 0u);
  EXPECT_EQ(failed[1].code, 70);
  EXPECT_NE(failed[1].message.find("no bell"), std::string::npos) << failed[1].message;
  scene.commands.push(engine::Hold{true});
  scene.commands.push(long_run());
  ASSERT_TRUE(until_failed(3));
  EXPECT_EQ(failed[2].message, failed[1].message);
  scene.thread.end_within(std::chrono::minutes(2));
}

TEST(WindowEnds, an_engine_that_responds_in_time_ends_normally) {
  Scene scene;
  scene.commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
  const auto start = std::chrono::steady_clock::now();
  scene.thread.end_within(std::chrono::minutes(2));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
  scene.events.take();
  scene.commands.push(engine::LoadModel{.model = "/nowhere/at/all"});
  usleep(10'000);
  EXPECT_TRUE(scene.events.take().empty()) << "the engine's thread has ended";
}

}  // namespace
