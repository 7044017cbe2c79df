// Measures how much the window slows decoding: runs of the engine while 60, 30 and 2 frames a second are drawn without a renderer, and while none
// are. Measures also how soon the engine follows a key. Prints the medians (docs/window.md). The test of the slow-down checks only the processor
// time of the window's thread, because other load hardly changes it.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/base/measure/spread.h"
#include "engine/event/queue.h"
#include "tests/app/window/window_engine.h"
#include "tests/support/work_time.h"
#include "tests/ui/support/headless.h"
#include "ui/files/setup_form.h"
#include "ui/prepare/time/run_times.h"
#include "ui/shell/frame_pace.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Measured {
  double step_ms = 0;  // own compute of a step
  double share = 0;    // processor time of the window's thread / time
};

// Decodes a text with all threads of the machine and draws `frames_per_second` frames of the window meanwhile; 0: none.
Measured run(ui::Shell& shell,
             headless::Headless& gui,
             engine::EventQueue& events,
             engine::CommandQueue& commands,
             double frames_per_second) {
  const std::size_t n_before = with_engine::timeline(shell).runs().size();
  commands.push(ui::command_of(shell.form(), false));
  const auto begun = Clock::now();
  const double worked = test::worked_ms();
  const auto is_over = [&] {
    const auto runs = with_engine::timeline(shell).runs();
    return runs.size() > n_before && runs.back().over();
  };
  while (!is_over() && Clock::now() - begun < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(1 / (frames_per_second > 0 ? frames_per_second : 10)));
    shell.take(events.take());
    if (frames_per_second > 0) gui.frame(shell);
  }
  const engine::RunRecord& done = with_engine::timeline(shell).runs().back();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
  return {static_cast<double>(done.decode_compute()) * 1e-6 /
              static_cast<double>(std::max<std::int64_t>(1, done.totals.n_steps)),
          (test::worked_ms() - worked) / ms};
}

TEST(WindowBesideEngine, takes_little_time_from_decoding) {
  constexpr int kRepeats = 3;
  headless::Headless gui;
  engine::EventQueue events;
  engine::CommandQueue commands;
  const ui::Catalog catalog = with_engine::catalog();
  const app::EngineThread thread(with_engine::assets().string(), "", {}, commands, events);
  ui::Shell shell{catalog, commands, ""};
  ui::SetupForm& form = shell.form();
  form.live = ui::lane_with(catalog, "ar");
  form.scale = "4x2";
  form.max_tokens = 300;
  form.ignore_eos = true;
  shell.show(ui::Screen::Live);
  run(shell, gui, events, commands, 60);  // loads the model
  ASSERT_TRUE(with_engine::timeline(shell).runs().back().finished.has_value());
  const double rates[] = {0, 60, 1 / ui::FramePace::kIdleSeconds, 1 / ui::FramePace::kSetSeconds};
  std::vector<double> step_ms[4], share[4];
  for (int i = 0; i < kRepeats; ++i)
    for (int of = 0; of < 4; ++of) {
      const Measured found = run(shell, gui, events, commands, rates[of]);
      step_ms[of].push_back(found.step_ms), share[of].push_back(found.share);
    }
  const double alone = engine::spread_of(step_ms[0]).median;
  for (int of = 1; of < 4; ++of) {
    const double ms = engine::spread_of(step_ms[of]).median;
    const double least = *std::ranges::min_element(share[of]);
    std::printf(
        "%2.0f frames a second: %.3f of the speed without (%.2f ms a step), %.1f %% of a core\n",
        rates[of], alone / ms, ms, 100 * least);
  }
  EXPECT_LT(*std::ranges::min_element(share[1]), 0.25 * test::kSlower);
  EXPECT_LT(*std::ranges::min_element(share[3]), 0.03 * test::kSlower);
}

// Presses a key with a modifier and draws frames until `done`. @return the time from the key on, ms
double ms_after_key(ui::Shell& shell,
                    headless::Headless& gui,
                    engine::EventQueue& events,
                    ImGuiKey modifier,
                    ImGuiKey key,
                    const std::function<bool()>& done) {
  ImGuiIO& io = ImGui::GetIO();
  io.AddKeyEvent(modifier, true);
  io.AddKeyEvent(key, true);
  io.AddKeyEvent(key, false);
  io.AddKeyEvent(modifier, false);
  const auto begun = Clock::now();
  while (!done() && Clock::now() - begun < std::chrono::seconds(60)) {
    gui.frame(shell);
    std::this_thread::sleep_for(std::chrono::duration<double>(1.0 / 60));
    shell.take(events.take());
  }
  return std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
}

TEST(WindowBesideEngine, keys_pause_and_stop_within_a_step_and_100_ms) {
  constexpr int kRepeats = 3;
  constexpr double kMost = 100;  // ms after the end of a step
  headless::Headless gui;
  engine::EventQueue events;
  engine::CommandQueue commands;
  const ui::Catalog catalog = with_engine::catalog();
  const app::EngineThread thread(with_engine::assets().string(), "", {}, commands, events);
  ui::Shell shell{catalog, commands, ""};
  ui::SetupForm& form = shell.form();
  form.live = ui::lane_with(catalog, "ar");
  form.scale = "4x2";
  form.max_tokens = 20;
  form.ignore_eos = true;
  shell.show(ui::Screen::Live);
  run(shell, gui, events, commands, 60);  // loads the model
  form.max_tokens = 600;
  const auto timeline = [&]() -> const engine::Timeline& { return with_engine::timeline(shell); };
  const auto is_over = [&] { return timeline().runs().back().over(); };
  // Draws frames until the newest run has `n` more steps.
  const auto wait_for_steps = [&](std::size_t n_runs, std::int64_t n) {
    const auto begun = Clock::now();
    const auto n_steps = [&] {
      return timeline().runs().size() < n_runs ? 0 : timeline().runs().back().totals.n_steps;
    };
    const std::int64_t before = n_steps();
    while (n_steps() < before + n && Clock::now() - begun < std::chrono::seconds(60)) {
      shell.take(events.take());
      gui.frame(shell);
    }
  };
  std::vector<double> pause_ms, stop_ms;
  double step_ms = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const std::size_t n_runs = timeline().runs().size() + 1;
    commands.push(ui::command_of(form, false));
    wait_for_steps(n_runs, 5);
    pause_ms.push_back(ms_after_key(shell, gui, events, ImGuiMod_Shift, ImGuiKey_Space,
                                    [&] { return timeline().held() || is_over(); }));
    ASSERT_TRUE(timeline().held());
    ms_after_key(shell, gui, events, ImGuiMod_Shift, ImGuiKey_Space,
                 [&] { return !timeline().held(); });
    wait_for_steps(n_runs, 5);
    stop_ms.push_back(ms_after_key(shell, gui, events, ImGuiMod_Ctrl, ImGuiKey_Period, is_over));
    const engine::RunRecord& stopped = timeline().runs().back();
    ASSERT_TRUE(stopped.was_stopped());
    ui::RunTimes times;
    extend(times, stopped);
    for (const ui::StepSpan& step : times.steps)
      step_ms = std::max(step_ms, (step.compute1 - step.compute0) * 1e-6);
  }
  std::printf(
      "from the key to the pause: %.1f ms, to the stop: %.1f ms (median; longest step %.1f)\n",
      engine::spread_of(pause_ms).median, engine::spread_of(stop_ms).median, step_ms);
  EXPECT_LT(*std::ranges::min_element(pause_ms), step_ms + kMost * test::kSlower);
  EXPECT_LT(*std::ranges::min_element(stop_ms), step_ms + kMost * test::kSlower);
}

}  // namespace
