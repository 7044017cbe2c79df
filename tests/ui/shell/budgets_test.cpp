// Time to draw a frame, and its size, over a session of a million events: processor time of the window's thread, without a renderer; and the time of
// a whole frame with one. Prints the figures (docs/window.md); the limits are for the least of the repeats, which other load cannot raise.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/timeline/lod.h"
#include "engine/event/timeline/timeline.h"
#include "tests/support/files.h"
#include "tests/support/work_time.h"
#include "tests/ui/support/drawn_window.h"
#include "tests/ui/support/long_race.h"
#include "tests/ui/support/replay.h"
#include "ui/prepare/search.h"

namespace {

using ui::Screen;

struct Frames {
  double least_ms = 0, median_ms = 0, p99_ms = 0;
  int n_rectangles = 0;
};

// Draws frames, with `before` in front of each.
Frames draw(DrawnWindow& window, const std::function<void(int)>& before = {}) {
  constexpr int kFrames = test::kSlower > 1 ? 200 : 600;
  for (int i = 0; i < 6; ++i) window.gui.frame(window.shell);
  std::vector<double> ms;
  Frames frames;
  for (int i = 0; i < kFrames; ++i) {
    ms.push_back(test::worked_ms([&] {
      if (before) before(i);
      frames.n_rectangles = std::max(frames.n_rectangles, window.gui.frame(window.shell) / 4);
    }));
  }
  std::ranges::sort(ms);
  frames.least_ms = ms.front(), frames.median_ms = ms[ms.size() / 2],
  frames.p99_ms = ms[ms.size() * 99 / 100];
  return frames;
}

void print(const char* what, const Frames& frames) {
  std::printf("%-28s %.2f ms (least %.2f, 99 %% below %.2f), %d rectangles\n", what,
              frames.median_ms, frames.least_ms, frames.p99_ms, frames.n_rectangles);
}

TEST(Budgets, of_a_session_of_a_million_events) {
  constexpr std::int64_t kEvents = 1'000'000;
  DrawnWindow window;
  ImGui::GetIO().DisplaySize = {1920, 1080};
  const engine::Timeline& timeline = window.shell.session().live().timeline;
  double taking_ms = 0;
  streams::long_race(
      kEvents,
      [&](std::vector<engine::Event> events) {
        taking_ms += test::worked_ms([&] { window.shell.take(std::move(events)); });
      },
      [&] { return timeline.n_events(); });
  const double per_second = static_cast<double>(timeline.n_events()) / taking_ms * 1e3;
  std::printf("intake                       %.2f million events a second\n", per_second * 1e-6);
  // A third of the budget of a million: the sum has no least, and other load on the machine slows the memory.
  EXPECT_GT(per_second * test::kSlower, 0.33e6);

  constexpr double kLive = 2, kCompare = 4, kMove = 50, kFind = 100, kFindAll = 1000,
                   kLevels = 100;  // ms
  constexpr int kRectangles = 40'000;
  const auto check = [&](const char* what, const Frames& frames, double most_ms) {
    print(what, frames);
    EXPECT_LT(frames.least_ms, most_ms * test::kSlower) << what;
    EXPECT_LT(frames.n_rectangles, kRectangles) << what;
  };
  window.shell.show(Screen::Live);
  window.shell.selection().run = 3;
  check("Live, whole run", draw(window), kLive);
  window.shell.key_at('W', true);
  for (int i = 0; i < 90; ++i) window.gui.frame(window.shell);
  window.shell.key_at('W', false);
  check("Live, zoomed", draw(window), kLive);
  const double end = window.shell.playhead().at;
  check("Live, playhead moved",
        draw(window,
             [&](int i) { window.shell.playhead().go_to(end * ((i * 37) % 100) / 100, end); }),
        kMove);
  const engine::RunRecord& run = *timeline.run(3);
  double find_ms = 1e9;
  for (int i = 0; i < 5; ++i)
    find_ms = std::min(
        find_ms, test::worked_ms([&] { ui::tokens_with(timeline, run, "in no text of the run"); }));
  std::printf("find in %zu tokens           %.1f ms\n", run.tokens.size(), find_ms);
  EXPECT_LT(find_ms, kFind * test::kSlower);
  const double find_all_ms = test::least_worked_ms(3, [&] {
    for (const engine::RunRecord& one : timeline.runs())
      ui::tokens_with(timeline, one, "in no text of the session");
  });
  std::printf("find in the whole session    %.1f ms\n", find_all_ms);
  EXPECT_LT(find_all_ms, kFindAll * test::kSlower);
  const double levels_ms = test::least_worked_ms(3, [&] {
    for (const engine::RunRecord& one : timeline.runs())
      engine::RunLod(engine::Clock::Compute).update(one);
  });
  std::printf("build the levels of detail   %.1f ms\n", levels_ms);
  // Four times the budget, because other tests use the memory meanwhile.
  EXPECT_LT(levels_ms, 4 * kLevels * test::kSlower);
  window.shell.show(Screen::Compare);
  check("Compare, four lanes", draw(window), kCompare);
}

// The first picture comes when the first part is read; reading takes place on another thread.
TEST(Budgets, of_opening_a_million_events) {
  constexpr std::int64_t kEvents = 1'000'000;
  constexpr double kFirst = 0.5, kComplete = 3;  // s
  const engine::test::Folder folder;
  const std::string path = folder / "long.pdrun";
  {
    engine::Recorder recorder(path);
    std::int64_t n = 0;
    streams::long_race(
        kEvents,
        [&](std::vector<engine::Event> events) {
          n += std::ssize(events);
          for (engine::Event& event : events) recorder.push(std::move(event));
        },
        [&] { return n; });
    recorder.close();
    ASSERT_FALSE(recorder.trouble().has_value());
  }
  DrawnWindow window;
  ImGui::GetIO().DisplaySize = {1920, 1080};
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
  window.shell.open(path);
  double first = 0;
  while (window.shell.reads() && passed() < 60 * test::kSlower) {
    window.gui.frame(window.shell);
    if (first == 0 && !window.shell.session().shown().timeline.runs().empty()) first = passed();
  }
  const double complete = passed();
  std::printf("open %.1f MB: first picture %.2f s, complete %.2f s\n",
              static_cast<double>(std::filesystem::file_size(path)) * 1e-6, first, complete);
  EXPECT_GE(window.shell.session().shown().timeline.n_events(), kEvents);
  // Four times the budgets, because other tests use the processors meanwhile.
  EXPECT_LT(first, 4 * kFirst * test::kSlower);
  EXPECT_LT(complete, 4 * kComplete * test::kSlower);
}

// Time between two frames of a window that draws without pause. Without a display the renderer is llvmpipe, for which the budget is.
TEST(Budgets, of_a_whole_frame_with_software_rendering) {
  constexpr double kFrame = 120;  // ms
  constexpr int kFrames = 200;
  scripted::play(
      "frames",
      [&](ImGuiTestContext* ctx, scripted::Stage& stage) {
        stage.shell->take(streams::race({"ar", "jacobi", "lookahead", "prompt-lookup"}, 300));
        stage.shell->show(Screen::Compare);
        ctx->Yield(20);
        std::vector<double> ms;
        for (int i = 0; i < kFrames; ++i) {
          const auto begun = std::chrono::steady_clock::now();
          ctx->Yield();
          ms.push_back(
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
                  .count());
        }
        std::ranges::sort(ms);
        std::printf("whole frame in a window      %.1f ms (least %.1f, 99 %% below %.1f)\n",
                    ms[kFrames / 2], ms.front(), ms[kFrames * 99 / 100]);
        IM_CHECK_LT(ms.front(), kFrame * test::kSlower);
      },
      {.width = 1920, .height = 1080});
}

}  // namespace
