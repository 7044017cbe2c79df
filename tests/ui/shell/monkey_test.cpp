// Random use of the window: keys, mouse, files, events, sizes. After every frame the drawn corners are finite, and the state of the window is
// consistent; Dear ImGui's assertions abort. The median of every forty frames is fast.
//   DECOSCOPE_MONKEY_SECONDS  for each seed, 3 by default
//   DECOSCOPE_MONKEY_SEEDS    "1,2,3"; 1 by default
// A failure prints the seed and the last actions; the same seed repeats them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "engine/event/timeline/timeline.h"
#include "tests/support/files.h"
#include "tests/support/work_time.h"
#include "tests/ui/support/drawn_window.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/keys.h"
#include "ui/widgets/assert_log.h"

namespace {

using engine::test::Folder;
using namespace ui;

std::string from_environment(const char* name, const char* otherwise) {
  const char* set = std::getenv(name);
  return set && *set ? set : otherwise;
}

std::vector<unsigned> seeds() {
  std::istringstream in(from_environment("DECOSCOPE_MONKEY_SEEDS", "1"));
  std::vector<unsigned> all;
  for (std::string one; std::getline(in, one, ',');)
    all.push_back(static_cast<unsigned>(std::stoul(one)));
  return all;
}

const std::vector<std::string> kFiles = {"assets/recordings/first_race.pdrun",
                                         "assets/lessons/2_draft_and_verify.pdrun",
                                         "assets/lessons/5_consistency_models.pdrun",
                                         "assets/lessons/8_scheduling_and_fastcot.pdrun",
                                         "assets/lessons/4_jacobi.pdrun",
                                         "assets/lessons/4_jacobi.json",
                                         "README.md",
                                         "no such file.pdrun"};

// Limit of the median processor time of kFrames frames, ms. A frame that reads a file may take longer.
constexpr double kMostFrameMs = 40 * test::kSlower;
constexpr std::size_t kFrames = 40;

// Limit of the requests to save, so that the disk does not fill.
constexpr int kMostSaves = 20;

// Returns true if the step is one of the run, or the next, whose turn waits in a queue.
bool has_step(const engine::RunRecord& run, engine::StepId step) {
  const std::size_t n = run.steps.size();
  return step <= (n == 0 ? 0 : run.steps.head(n - 1).begun.step + 1);
}

// Returns true if the position has a token of the run, or a step can have proposed one for it.
bool has_position(const engine::RunRecord& run, int position) {
  const int end = run.tokens.empty() ? run.first_generated() : run.tokens.back().pos + 1;
  if (position < end) return true;
  int most = 0;  // proposals of a step
  for (const engine::BlockRefined& block : run.early_blocks)
    most = std::max(most, static_cast<int>(block.tokens.size()));
  for (const engine::StepRecord& step : run.steps) {
    most = std::max(most, engine::head_of(step).n_rows);
    for (const engine::BlockRefined& block : step.blocks)
      most = std::max(most, static_cast<int>(block.tokens.size()));
  }
  return position <= end + most;
}

// Returns true if a run of the session takes at least this own compute, ns. The selected run may be shorter.
bool has_time(const engine::Timeline& timeline, double compute) {
  return compute <= 0 || std::ranges::any_of(timeline.runs(), [&](const engine::RunRecord& run) {
           RunTimes times;
           extend(times, run);
           return compute <= times.end_compute() + 1;
         });
}

class Monkey {
 public:
  /// @param folder  copies of the files, because notes are written beside recordings
  Monkey(unsigned seed, const std::string& folder) : random_(seed), seed_(seed) {
    for (const std::string& file : kFiles) {
      files_.push_back(folder + "/" + std::filesystem::path(file).filename().string());
      if (const std::string from = DECOSCOPE_SOURCE_DIR "/" + file; std::filesystem::exists(from))
        std::filesystem::copy_file(from, files_.back(),
                                   std::filesystem::copy_options::overwrite_existing);
    }
  }

  /// Does one random action and draws a frame. @return false after a violated invariant
  bool act() {
    const int kind = below(100);
    if (kind < 30)
      move_mouse();
    else if (kind < 50)
      press_mouse();
    else if (kind < 75)
      press_key();
    else if (kind < 80)
      type();
    else if (kind < 92)
      perform_action();
    else if (kind < 95)
      take_events();
    else if (kind < 97)
      open_file();
    else
      resize();
    frame_ms_.push_back(test::worked_ms([&] { window_.gui.frame(window_.shell); }));
    while (window_.commands.try_take()) {
    }
    return is_consistent() && (frame_ms_.size() < kFrames || is_fast());
  }
  std::string story() const {
    std::string text = fmt::format("seed {}, action {}:\n", seed_, n_);
    for (const std::string& one : last_) text += "  " + one + "\n";
    return text;
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  void note(std::string what) {
    ++n_;
    last_.push_back(std::move(what));
    if (last_.size() > 30) last_.pop_front();
  }

  void move_mouse() {
    ImGuiIO& io = ImGui::GetIO();
    const ImVec2 to{static_cast<float>(below(static_cast<int>(io.DisplaySize.x) + 20) - 10),
                    static_cast<float>(below(static_cast<int>(io.DisplaySize.y) + 20) - 10)};
    io.AddMousePosEvent(to.x, to.y);
    note(fmt::format("mouse to {} {}", to.x, to.y));
  }
  void press_mouse() {
    ImGuiIO& io = ImGui::GetIO();
    const int button = below(10) < 7 ? 0 : below(3);
    if (below(4) == 0) {
      const float by = static_cast<float>(below(7) - 3);
      io.AddMouseWheelEvent(0, by);
      return note(fmt::format("wheel {}", by));
    }
    const bool is_down = !ImGui::IsMouseDown(button);
    io.AddMouseButtonEvent(button, is_down);
    if (is_down && below(3) > 0) io.AddMouseButtonEvent(button, false);  // a click
    note(fmt::format("button {} {}", button, is_down ? "down" : "up"));
  }
  void press_key() {
    static constexpr ImGuiKey kMods[] = {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt};
    ImGuiIO& io = ImGui::GetIO();
    const auto keys = key_actions();
    const int chord =
        below(3) > 0 ? keys[static_cast<std::size_t>(below(static_cast<int>(keys.size())))].chord
                     : static_cast<int>(ImGuiKey_Tab) + below(60);
    if (chord == (ImGuiMod_Ctrl | ImGuiKey_S) && ++n_saves_ > kMostSaves) return;
    for (const ImGuiKey mod : kMods)
      if (chord & mod) io.AddKeyEvent(mod, true);
    io.AddKeyEvent(static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_), true);
    io.AddKeyEvent(static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_), false);
    for (const ImGuiKey mod : kMods)
      if (chord & mod) io.AddKeyEvent(mod, false);
    note("key " + chord_words(chord));
  }
  void type() {
    static constexpr const char* kTexts[] = {
        "a",  "12",  "-1",      "99999999999", "\xF0\x9F\x98\x80", "\xE6\x97\xA5\xE6\x9C\xAC",
        "\n", "0.5", "\xD7\xA9"};
    const char* text = kTexts[below(std::size(kTexts))];
    ImGui::GetIO().AddInputCharactersUTF8(text);
    note(std::string("text ") + text);
  }
  void perform_action() {
    const auto keys = key_actions();
    const KeyAction& key = keys[static_cast<std::size_t>(below(static_cast<int>(keys.size())))];
    if (key.action == Action::Save && ++n_saves_ > kMostSaves) return;
    note(std::string("action ") + key.name);
    window_.shell.perform(key.action);
  }
  void take_events() {
    static constexpr const char* kDecoders[] = {"lookahead", "jacobi", "ar", "prompt-lookup"};
    const int kind = below(4);
    note(fmt::format("events {}", kind));
    if (kind == 0)
      window_.shell.take(streams::failed_run());
    else if (kind == 1)
      window_.shell.take(streams::cut_mid_step());
    else if (kind == 2)
      window_.shell.take(streams::race({"ar", "jacobi", "lookahead"}));
    else
      window_.shell.take(streams::one_run(kDecoders[below(4)]));
  }
  void open_file() {
    const std::string& file =
        files_[static_cast<std::size_t>(below(static_cast<int>(files_.size())))];
    note("open " + file);
    window_.shell.open(file, below(2) == 0);
  }
  void resize() {
    static constexpr ImVec2 kSizes[] = {{1600, 1000}, {1280, 720}, {640, 400},
                                        {2560, 1440}, {900, 500},  {300, 200}};
    ImGui::GetIO().DisplaySize = kSizes[below(std::size(kSizes))];
    note(fmt::format("size {}", ImGui::GetIO().DisplaySize.x));
  }

  bool is_consistent() {
    Shell& shell = window_.shell;
    for (const ImDrawList* list : ImGui::GetDrawData()->CmdLists)
      for (const ImDrawVert& corner : list->VtxBuffer)
        if (!std::isfinite(corner.pos.x) || !std::isfinite(corner.pos.y))
          return fails("a corner is not finite");
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive && !(window->Size.x >= 0 && window->Size.y >= 0))
        return fails("a window has no size");
    const Document& shown = shell.session().shown();
    const engine::RunRecord* run = shown.timeline.run(shell.selection().run);
    if (shell.selection().run != 0 && !run) return fails("the selected run is not there");
    // The place of a run that was selected before is removed in the next frame.
    const Place& locked = shell.selection().locked;
    if (run && locked.run == run->id()) {
      if (!has_step(*run, locked.step)) return fails("the selected step is not there");
      if (!has_position(*run, std::max(locked.position, 0)))
        return fails("the selected position is not there");
    }
    if (!(shell.playhead().at >= 0)) return fails("the playhead is before the start");
    if (!has_time(shown.timeline, shell.playhead().at))
      return fails("the playhead is after the end of every run");
    Settings back;
    std::string why;
    if (!from_text(to_text(shell.settings()), back, why) ||
        to_text(back) != to_text(shell.settings()))
      return fails("the settings cannot be read again: " + why);
    Notes notes;
    if (!from_text(to_text(shell.notes()), notes, why))
      return fails("the notes cannot be read again: " + why);
    return true;
  }
  bool is_fast() {
    const auto middle = frame_ms_.begin() + kFrames / 2;
    std::ranges::nth_element(frame_ms_, middle);
    const double median = *middle;
    frame_ms_.clear();
    return median < kMostFrameMs || fails(fmt::format("the median frame takes {:.1f} ms", median));
  }
  bool fails(const std::string& what) {
    ADD_FAILURE() << what << "\n" << story();
    return false;
  }

  std::vector<std::string> files_;
  std::mt19937 random_;
  unsigned seed_;
  std::int64_t n_ = 0;
  std::deque<std::string> last_;
  std::vector<double> frame_ms_;  // processor time
  int n_saves_ = 0;
  DrawnWindow window_;
};

// The folder of all files that the window writes, during the lifetime: that of the user and of the process.
class Home {
 public:
  explicit Home(const std::string& folder) {
    std::filesystem::current_path(folder);
    for (const char* name : {"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}) {
      const char* had = std::getenv(name);
      had_.emplace_back(name, had ? std::optional<std::string>(had) : std::nullopt);
      setenv(name, folder.c_str(), 1);
    }
  }
  ~Home() {
    std::filesystem::current_path(before_);
    for (const auto& [name, had] : had_) had ? setenv(name, had->c_str(), 1) : unsetenv(name);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  std::vector<std::pair<const char*, std::optional<std::string>>> had_;
};

TEST(Monkey, random_use_keeps_the_window_consistent) {
  const Folder folder;  // what the window writes
  const Home home(folder.path());
  const std::chrono::duration<double> time(
      std::stod(from_environment("DECOSCOPE_MONKEY_SECONDS", "3")));
  for (const unsigned seed : seeds()) {
    Monkey monkey(seed, folder.path());
    const AssertLog asserts([&monkey](const std::string& said) {
      ADD_FAILURE() << said << "\n" << monkey.story();
    });
    const auto end = std::chrono::steady_clock::now() + time;
    std::int64_t n = 0;
    while (std::chrono::steady_clock::now() < end && !HasFailure() && monkey.act()) ++n;
    std::cout << "seed " << seed << ": " << n << " actions\n";
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
