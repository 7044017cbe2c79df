// The real window under a display: pictures of every screen, what happens without one, idling.
#include "ui/window.h"

#include <gtest/gtest.h>

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "display.h"
#include "kernels/error.h"
#include "streams.h"

namespace {

namespace fs = std::filesystem;

// Where pictures go: $DECOSCOPE_PICTURES to look at them, else a temporary folder.
fs::path pictures() {
  const char* wanted = std::getenv("DECOSCOPE_PICTURES");
  const fs::path folder =
      wanted ? fs::path(wanted) : fs::temp_directory_path() / "decoscope-pictures";
  fs::create_directories(folder);
  return folder;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void photograph(const std::string& name,
                const std::string& screen,
                const std::string& theme,
                const std::vector<engine::Event>& events) {
  engine::EventQueue queue;
  engine::CommandQueue commands;
  for (const engine::Event& event : events) queue.push(event);
  ui::WindowOptions options;
  options.screen = screen;
  options.theme = theme;
  options.config_dir = "-";
  options.screenshot = (pictures() / (name + "-" + theme + ".png")).string();
  options.screenshot_frames = 8;
  EXPECT_EQ(ui::run_window(queue, commands, streams::catalog(), options), 0);
  const std::string png = bytes_of(options.screenshot);
  // A picture of one colour packs into a few kilobytes.
  EXPECT_GT(png.size(), 20'000u) << options.screenshot;
  EXPECT_EQ(png.substr(1, 3), "PNG");
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

TEST(Window, every_screen_has_its_picture) {
  if (!display::ready()) GTEST_SKIP() << "no display, and no Xvfb to make one";
  const auto race = streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"});
  for (const char* theme : {"dark", "light", "monochrome"}) {
    photograph("welcome", "welcome", theme, {});
    photograph("live", "live", theme, streams::one_run("lookahead"));
    photograph("jacobi", "live", theme, streams::one_run("jacobi"));
    photograph("compare", "compare", theme, race);
  }
  photograph("empty", "live", "dark", {});
  photograph("failed", "live", "dark", streams::failed_run());
}

TEST(Window, says_so_when_there_is_no_display) {
  const std::string had = std::getenv("DISPLAY") ? std::getenv("DISPLAY") : "";
  setenv("DISPLAY", ":4242", 1);
  engine::EventQueue queue;
  engine::CommandQueue commands;
  try {
    ui::run_window(queue, commands, streams::catalog(), {.config_dir = "-"});
    ADD_FAILURE() << "a window opened on a display that is not there";
  } catch (const kernels::Error& error) {
    EXPECT_EQ(error.code(), kernels::ErrorCode::Device);
    EXPECT_NE(std::string(error.what()).find("display"), std::string::npos);
  }
  if (had.empty())
    unsetenv("DISPLAY");
  else
    setenv("DISPLAY", had.c_str(), 1);
}

TEST(Window, draws_nothing_while_nothing_happens) {
  if (!display::ready()) GTEST_SKIP() << "no display, and no Xvfb to make one";
  engine::EventQueue queue;
  engine::CommandQueue commands;
  for (const engine::Event& event : streams::one_run("lookahead")) queue.push(event);
  std::atomic<int> n_frames = 0;
  std::atomic<bool> done = false;
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.hooks.frame_shown = [&] { ++n_frames; };
  options.hooks.wants_to_close = [&] { return done.load(); };
  int n_settled = 0;
  double cost = 0;
  std::thread engine([&] {
    using namespace std::chrono_literals;
    std::this_thread::sleep_for(1500ms);
    n_settled = n_frames;
    const double before = cpu_seconds();
    std::this_thread::sleep_for(2000ms);
    cost = cpu_seconds() - before;
    n_settled = n_frames - n_settled;
    done = true;
    queue.push(engine::Notice{.text = "wake"});
  });
  ui::run_window(queue, commands, streams::catalog(), options);
  engine.join();
  EXPECT_LE(n_settled, 1);
  EXPECT_LE(cost / 2, 0.01) << "share of a core while idle";
}

}  // namespace
