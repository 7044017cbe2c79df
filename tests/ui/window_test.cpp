// The real window on a display: pictures of every screen, a missing display, idle behaviour.
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <GL/gl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/queue.h"
#include "engine/event/recording/recorder.h"
#include "kernels/error.h"
#include "tests/support/display.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/ui/support/streams.h"
#include "tests/ui/support/training_folder.h"
#include "ui/panels/live/text_view.h"
#include "ui/shell/frame_pace.h"
#include "ui/shell/layout.h"
#include "ui/shell/shell.h"
#include "ui/shell/window.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Returns the folder of pictures: $DECOSCOPE_PICTURES, else a temporary folder.
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

// The size of a window and its scale, percent; zero: the defaults.
struct Frame {
  int width = 0, height = 0, scale = 0;
};

// @param open  a file to open
void photograph(const std::string& name,
                const std::string& screen,
                const std::string& theme,
                const std::vector<engine::Event>& events,
                const Frame& frame = {},
                const std::string& open = "") {
  engine::EventQueue queue;
  engine::CommandQueue commands;
  for (const engine::Event& event : events) queue.push(event);
  ui::WindowOptions options;
  options.screen = screen;
  options.theme = theme;
  options.open = open;
  if (frame.width > 0) {
    options.width = frame.width;
    options.height = frame.height;
    options.ui_scale = frame.scale;
  }
  options.config_dir = "-";
  options.screenshot = (pictures() / (name + "-" + theme + ".png")).string();
  options.screenshot_frames = 8;
  EXPECT_EQ(ui::run_window(queue, commands, streams::catalog(), options), 0);
  const std::string png = bytes_of(options.screenshot);
  // A picture of one colour compresses to a few kilobytes, a small one to less.
  const int area = options.width * options.height;
  EXPECT_GT(png.size(), static_cast<std::size_t>(std::min(20'000, area / 40)))
      << options.screenshot;
  EXPECT_EQ(png.substr(1, 3), "PNG");
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

TEST(Window, every_screen_has_a_picture) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const auto race = streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"});
  const training_folder::Folder training;
  training.fill();
  for (const char* theme : {"dark", "light", "monochrome", "high-contrast"}) {
    photograph("welcome", "welcome", theme, {});
    photograph("live", "live", theme, streams::one_run("lookahead"));
    photograph("jacobi", "live", theme, streams::one_run("jacobi"));
    photograph("compare", "compare", theme, race);
    for (const Frame& frame : {Frame{1280, 720, 100},
                               {1280, 720, 150},
                               {1920, 1080, 150},
                               {2560, 1440, 200},
                               {640, 400, 100}}) {
      const std::string size = fmt::format("-{}x{}-at-{}", frame.width, frame.height, frame.scale);
      photograph("welcome" + size, "welcome", theme, {}, frame);
      photograph("live" + size, "live", theme, streams::one_run("jacobi"), frame);
      photograph("compare" + size, "compare", theme, race, frame);
      photograph("lab" + size, "lab", theme, race, frame);
      photograph("training" + size, "training", theme, {}, frame, training.path());
      photograph("lesson" + size, "lesson", theme, {}, frame,
                 DECOSCOPE_SOURCE_DIR "/assets/lessons/2_draft_and_verify.json");
    }
  }
  photograph("empty", "live", "dark", {});
  photograph("failed", "live", "dark", streams::failed_run());
}

// Sets an environment variable during its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* had = std::getenv(name)) had_ = had;
    setenv(name, value, 1);
  }
  ~Variable() {
    if (had_)
      setenv(name_, had_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> had_;
};

std::uint32_t width_of(const std::string& png) {
  std::uint32_t width = 0;
  for (std::size_t i = 16; i < 20; ++i) width = width << 8 | static_cast<unsigned char>(png.at(i));
  return width;
}

TEST(Window, picture_of_panel_shows_the_requested_step) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const auto take = [](const std::string& panel, const char* decoder, const std::string& theme) {
    engine::EventQueue queue;
    engine::CommandQueue commands;
    for (const engine::Event& event : streams::one_run(decoder)) queue.push(event);
    ui::Shell* shell = nullptr;
    engine::StepId selected = -1;
    ui::WindowOptions options{.screen = "live", .theme = theme, .config_dir = "-"};
    options.screenshot = (pictures() / ("panel-" + panel + "-" + theme + ".png")).string();
    fs::remove(options.screenshot);
    options.screenshot_frames = 8;
    options.panel = panel;
    options.step = 3;
    options.hooks.shell_made = [&](ui::Shell& made) { shell = &made; };
    options.hooks.frame_shown = [&] { selected = shell->selection().locked.step; };
    ui::run_window(queue, commands, streams::catalog(), options);
    EXPECT_EQ(selected, 3);
    return bytes_of(options.screenshot);
  };
  for (const char* theme : {"dark", "light"}) {
    const std::vector<std::pair<const char*, const char*>> panels{
        {"tree", "mcsd"}, {"mask", "mcsd"}, {"distributions", "mcsd"}, {"text", "fastcot"}};
    for (const auto& [panel, decoder] : panels) {
      const std::string png = take(panel, decoder, theme);
      EXPECT_GT(png.size(), 5'000u) << panel;
      EXPECT_GT(width_of(png), 400u) << panel;
      EXPECT_LT(width_of(png), 1'300u) << panel << ": the window is 1600 wide";
    }
  }
  EXPECT_THROW(take("lanes", "mcsd", "dark"), kernels::Error) << "a panel of another screen";
}

std::string refusal_of_a_window() {
  engine::EventQueue queue;
  engine::CommandQueue commands;
  try {
    ui::run_window(queue, commands, streams::catalog(), {.config_dir = "-"});
  } catch (const kernels::Error& error) {
    EXPECT_EQ(error.code(), kernels::ErrorCode::Device);
    return error.what();
  }
  ADD_FAILURE() << "a window opened on a display that does not exist";
  return "";
}

TEST(Window, reports_a_missing_display) {
  const Variable wayland("WAYLAND_DISPLAY", "wayland-4242");  // it does not exist
  {
    const Variable display("DISPLAY", ":4242");
    EXPECT_THAT(refusal_of_a_window(), HasSubstr("no display can be opened"));
  }
  const Variable display("DISPLAY", "");
  EXPECT_THAT(refusal_of_a_window(), HasSubstr("no display can be opened: DISPLAY is empty; set"));
}

TEST(FramePace, is_low_while_measuring_with_software_rendering) {
  EXPECT_TRUE(ui::draws_in_software("llvmpipe (LLVM 15.0.6, 256 bits)"));
  EXPECT_TRUE(ui::draws_in_software("Google SwiftShader"));
  EXPECT_FALSE(ui::draws_in_software("NVIDIA GeForce RTX 4090/PCIe/SSE2"));
  EXPECT_FALSE(ui::draws_in_software(nullptr));

  ui::FramePace card(false), software(true);
  for (ui::FramePace* pace : {&card, &software}) {
    pace->drew(0.07);
    EXPECT_EQ(pace->gap(false), 1.0 / 60);
    pace->measuring(true);
  }
  EXPECT_EQ(card.gap(false), 1.0 / 60);
  EXPECT_FALSE(card.quiet());
  EXPECT_TRUE(software.quiet());
  EXPECT_EQ(software.gap(false), 1) << "the lower limit of the frame rate";
  EXPECT_EQ(software.gap(true), ui::FramePace::kAnswerSeconds);
  software.drew(0.03);
  EXPECT_NEAR(software.gap(false), 0.6, 1e-9);
  software.drew(0.001);
  EXPECT_EQ(software.gap(false), 0.5) << "at most 2 frames per second";
  software.measuring(false);
  EXPECT_EQ(software.gap(false), 1.0 / 60);
}

TEST(FramePace, is_low_while_a_set_of_races_is_measured) {
  ui::FramePace card(false);
  card.drew(0.016);
  card.measuring(true, true);
  EXPECT_TRUE(card.quiet());
  EXPECT_EQ(card.gap(false), 0.5);
  EXPECT_EQ(card.gap(true), 1.0 / 60) << "input is answered at once";
  card.measuring(false, true);
  EXPECT_FALSE(card.quiet());
  ui::FramePace software(true);
  software.drew(0.03);
  software.measuring(true, true);
  EXPECT_NEAR(software.gap(false), 0.6, 1e-9);
}

TEST(FramePace, is_20_per_second_while_measuring_without_focus) {
  ui::FramePace card(false);
  card.focus(false);
  EXPECT_EQ(card.gap(false), 1.0 / 60) << "nothing is measured";
  EXPECT_FALSE(card.unfocused());
  card.measuring(true);
  EXPECT_TRUE(card.unfocused());
  EXPECT_FALSE(card.quiet());
  EXPECT_EQ(card.gap(false), 1.0 / 20);
  EXPECT_EQ(card.gap(true), 1.0 / 20);
  card.limit(10);
  EXPECT_EQ(card.gap(false), 1.0 / 10) << "a lower limit of the user stays";
  card.limit(60);
  card.measuring(true, true);
  EXPECT_EQ(card.gap(false), 0.5) << "a set of races is measured";
  EXPECT_EQ(card.gap(true), 1.0 / 20);
  card.measuring(true);
  card.focus(true);
  EXPECT_FALSE(card.unfocused());
  EXPECT_EQ(card.gap(false), 1.0 / 60);
  ui::FramePace software(true);
  software.focus(false);
  software.measuring(true);
  EXPECT_EQ(software.gap(false), 0.5);
}

TEST(FramePace, is_30_per_second_while_measuring_without_input) {
  ui::FramePace card(false);
  card.since_input(5);
  EXPECT_EQ(card.gap(false), 1.0 / 60) << "nothing is measured";
  card.measuring(true);
  EXPECT_EQ(card.gap(false), 1.0 / 30);
  EXPECT_EQ(card.gap(true), 1.0 / 60) << "input is answered at once";
  card.limit(24);
  EXPECT_EQ(card.gap(false), 1.0 / 24) << "a lower limit of the user stays";
  card.limit(60);
  card.since_input(0.5);
  EXPECT_EQ(card.gap(false), 1.0 / 60) << "the window was just used";
}

TEST(Window, draws_rarely_while_measuring) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue queue;
  engine::CommandQueue commands;
  const std::vector<engine::Event> events = streams::one_run("lookahead");
  const auto end = std::ranges::find_if(events, [](const engine::Event& event) {
    return std::holds_alternative<engine::RunFinished>(event);
  });
  for (auto event = events.begin(); event != end; ++event) queue.push(*event);
  constexpr int kFrames = 6;
  int n_measuring = 0;  // frames
  double first = 0, last = 0;
  bool software = false;
  ui::Shell* shell = nullptr;
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.hooks.shell_made = [&](ui::Shell& made) {
    shell = &made;
    software = ui::draws_in_software(reinterpret_cast<const char*>(glGetString(GL_RENDERER)));
  };
  options.hooks.frame_shown = [&] {
    if (!shell->measures()) return;
    last =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    if (n_measuring++ == 1) first = last;  // the previous frame was drawn at the other rate
  };
  options.hooks.wants_to_close = [&] { return n_measuring >= kFrames; };
  ui::run_window(queue, commands, streams::catalog(), options);
  if (!software) GTEST_SKIP() << "a graphics card draws the window";
  // A busy machine can only be slower; at 60 frames per second it would be about a tenth.
  EXPECT_GT(last - first, 0.5 * (kFrames - 2) * ui::FramePace::kQuietSeconds);
}

TEST(Window, draws_no_frames_while_idle) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
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
  std::jthread engine([&] {
    using namespace std::chrono_literals;
    // Wait until no frame was drawn for a second.
    for (int quiet = 0, last = -1, i = 0; quiet < 10 && i < 600; ++i) {
      std::this_thread::sleep_for(100ms);
      quiet = n_frames == last && last > 0 ? quiet + 1 : 0;
      last = n_frames;
    }
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

// The catalog changes later, as when a driver lists its devices late.
TEST(Window, idle_window_shows_catalog_changes) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue queue;
  engine::CommandQueue commands;
  std::atomic<int> n_frames = 0;
  std::atomic<bool> changed = false, done = false;
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.hooks.frame_shown = [&] { ++n_frames; };
  options.hooks.has_news = [&] { return changed.exchange(false); };
  options.hooks.wants_to_close = [&] { return done.load(); };
  bool drew = false;
  std::jthread program([&] {
    using namespace std::chrono_literals;
    for (int quiet = 0, last = -1, i = 0; quiet < 10 && i < 600; ++i) {
      std::this_thread::sleep_for(100ms);
      quiet = n_frames == last && last > 0 ? quiet + 1 : 0;
      last = n_frames;
    }
    const int settled = n_frames;
    changed = true;  // without an event of the window system
    for (int i = 0; i < 100 && n_frames == settled; ++i) std::this_thread::sleep_for(50ms);
    drew = n_frames > settled;
    done = true;
  });
  ui::run_window(queue, commands, streams::catalog(), options);
  program.join();
  EXPECT_TRUE(drew);
}

// Five keys are pressed and released between two frames; Dear ImGui needs ten frames for them.
TEST(Window, idle_window_handles_every_key) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue queue;
  engine::CommandQueue commands;
  for (const engine::Event& event : streams::one_run("lookahead")) queue.push(event);
  std::atomic<bool> type = false, done = false;
  std::atomic<int> lens = 0;
  ui::Shell* shell = nullptr;
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.hooks.shell_made = [&](ui::Shell& made) { shell = &made; };
  options.hooks.frame_shown = [&] { lens = static_cast<int>(shell->state<ui::TextView>().lens); };
  options.hooks.wants_to_close = [&] {
    if (type.exchange(false))
      for (int i = 0; i < 10; ++i) ImGui::GetIO().AddKeyEvent(ImGuiKey_L, i % 2 == 0);
    return done.load();
  };
  std::jthread hands([&] {
    using namespace std::chrono_literals;
    std::this_thread::sleep_for(1500ms);  // until the window is idle
    type = true;
    queue.push(engine::Notice{.text = "wake"});
    for (int i = 0; i < 150 && lens != 5; ++i) std::this_thread::sleep_for(100ms);
    done = true;
  });
  ui::run_window(queue, commands, streams::catalog(), options);
  hands.join();
  EXPECT_EQ(lens, 5);
}

TEST(Window, closes_on_a_signal_while_idle) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  engine::EventQueue queue;
  engine::CommandQueue commands;
  std::atomic<bool> asked = false;
  ui::WindowOptions options;
  options.config_dir = "-";
  options.screen = "live";
  options.hooks.wants_to_close = [&] { return asked.load(); };
  std::jthread terminal([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    asked = true;  // like a signal handler, without an event of the window system
  });
  const auto begun = std::chrono::steady_clock::now();
  ui::run_window(queue, commands, streams::catalog(), options);
  terminal.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(8));
}

// A second name of the old file keeps its text only if the file is replaced and not written in place.
TEST(Window, layout_is_replaced_by_a_rename) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const fs::path folder =
      fs::temp_directory_path() / ("decoscope-rename" + std::to_string(getpid()));
  fs::remove_all(folder);
  const fs::path file = folder / "layout.ini", second_name = folder / "old.ini";
  std::string while_running;
  const auto open = [&](const std::function<bool()>& ends, float saving_rate) {
    engine::EventQueue queue;
    engine::CommandQueue commands;
    ui::WindowOptions options;
    options.config_dir = folder.string();
    options.screen = "live";
    options.hooks.draw_always = true;
    options.hooks.context_made = [&] { ImGui::GetIO().IniSavingRate = saving_rate; };
    options.hooks.wants_to_close = ends;
    options.hooks.before_teardown = [&] { while_running = bytes_of(file); };
    ui::run_window(queue, commands, streams::catalog(), options);
  };
  int n_frames = 0;
  open([&] { return ++n_frames > 6; }, 1000);
  EXPECT_EQ(while_running, "") << "saved before Dear ImGui asked for it";
  const std::string at_end = bytes_of(file);
  EXPECT_NE(at_end.find("[Docking][Data]"), std::string::npos) << at_end;
  fs::create_hard_link(file, second_name);
  std::ofstream(second_name, std::ios::app) << "\n[Window][mine]\nPos=1,2\n";
  const std::string before = bytes_of(second_name);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  open([&] { return bytes_of(file) != before || std::chrono::steady_clock::now() > deadline; },
       0.01f);
  EXPECT_NE(while_running, before) << "not saved while running";
  EXPECT_NE(while_running.find("[Docking][Data]"), std::string::npos);
  EXPECT_EQ(bytes_of(second_name), before) << "layout.ini was written in place";
  for (const auto& entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
  fs::remove_all(folder);
}

// A recording's layout is neither in layout.ini nor in settings.txt, also while the recording is shown.
TEST(Window, layout_of_a_recording_is_not_saved) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const engine::test::Folder folder;
  const std::string recording = folder / "a.pdrun", config = folder / "config";
  {
    engine::Recorder recorder(recording);
    for (const engine::Event& event : streams::one_run("lookahead")) recorder.push(event);
  }
  engine::test::write_file(recording + ".ui", "decoscope notes 1\nlayout = watching\n");
  const auto node_of = [](const char* panel) {
    const std::string name = ui::window_name(ui::Screen::Live, panel, "");
    const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
    return window ? window->DockId : 0;
  };
  // Returns the word of the layout at the end, and whether its panels are those of "watching".
  const auto open = [&](const std::string& file, const std::string& expected) {
    engine::EventQueue queue;
    engine::CommandQueue commands;
    ui::Shell* shell = nullptr;
    std::pair<std::string, bool> shown;
    ui::WindowOptions options;
    options.config_dir = config;
    options.screen = "live";
    options.open = file;
    options.hooks.draw_always = true;
    options.hooks.context_made = [&] { ImGui::GetIO().IniSavingRate = 0.01f; };
    options.hooks.shell_made = [&](ui::Shell& made) { shell = &made; };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    int n = 0;
    options.hooks.wants_to_close = [&] {
      if (!shell->reads() && shell->settings().layout == expected) ++n;
      return n > 30 || std::chrono::steady_clock::now() > deadline;
    };
    options.hooks.before_teardown = [&] {
      shown = {shell->settings().layout, node_of("numbers") == node_of("trajectory")};
      EXPECT_EQ(ui::load_settings(config).layout, "");
    };
    ui::run_window(queue, commands, streams::catalog(), options);
    return shown;
  };
  using Shown = std::pair<std::string, bool>;
  EXPECT_EQ(open("", ""), Shown("", false));
  EXPECT_EQ(open(recording, "watching"), Shown("watching", true));
  EXPECT_EQ(open("", ""), Shown("", false));
}

// A layout of an older version lacks newer panels; they would float.
TEST(Window, layout_of_an_older_version_is_set_aside) {
  NEEDS(display::ready(), "no display, and no Xvfb to make one");
  const fs::path folder =
      fs::temp_directory_path() / ("decoscope-layout" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "layout.ini") << "[Window][Text###live.text]\nPos=400,300\nSize=200,100\n";
  const auto open = [&](const std::function<void()>& look) {
    engine::EventQueue queue;
    queue.push(engine::SearchBegun{.search = 1});  // the panel Thoughts is offered
    engine::CommandQueue commands;
    ui::WindowOptions options;
    options.config_dir = folder.string();
    options.screen = "live";
    options.hooks.draw_always = true;
    int n = 0;
    options.hooks.wants_to_close = [&] { return ++n > 6; };
    options.hooks.before_teardown = look;
    ui::run_window(queue, commands, streams::catalog(), options);
  };
  const auto all_docked = [] {
    for (const char* id : ui::panels_of(ui::Screen::Live)) {
      if (std::string_view(id) == "schedule") continue;  // the panel Schedule is not offered
      const ImGuiWindow* window =
          ImGui::FindWindowByName(ui::window_name(ui::Screen::Live, id, "").c_str());
      ASSERT_NE(window, nullptr) << id;
      EXPECT_NE(window->DockId, 0u) << id << " floats";
    }
  };
  open(all_docked);
  EXPECT_TRUE(fs::exists(folder / "layout.ini.old"));
  const std::string kept = bytes_of(folder / "layout.ini");
  EXPECT_NE(kept.find("[Decoscope][Layout]\nversion="), std::string::npos);
  fs::remove(folder / "layout.ini.old");
  open(all_docked);
  EXPECT_FALSE(fs::exists(folder / "layout.ini.old"))
      << "a layout of the current version was replaced";
  fs::remove_all(folder);
}

}  // namespace
