// Measures how much the window slows decoding: runs of the engine while 60, 30 and 2 frames a second are drawn without a renderer, and while none
// are. Prints the medians (docs/window.md). Checks only the processor time of the window's thread, because other load hardly changes it.
#include <algorithm>
#include <chrono>
#include <cstdio>
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

}  // namespace
