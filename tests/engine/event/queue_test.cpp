#include "engine/event/queue.h"

#include <thread>

#include <gtest/gtest.h>

#include "engine/event/clock.h"

namespace engine {
namespace {

TEST(EventQueue, keeps_order_and_loses_nothing_under_threads) {
  constexpr int kEvents = 20'000;
  EventQueue queue;
  std::thread engine_thread([&queue] {
    for (int i = 0; i < kEvents; ++i) queue.push(StepBegun{.t = i, .step = i});
  });
  std::vector<Event> all;
  while (all.size() < kEvents) {
    for (Event& event : queue.take(777)) all.push_back(std::move(event));
  }
  engine_thread.join();
  for (int i = 0; i < kEvents; ++i) {
    ASSERT_EQ(std::get<StepBegun>(all[static_cast<std::size_t>(i)]).step, i);
  }
  EXPECT_EQ(queue.size(), 0U);
}

TEST(EventQueue, wakes_once_for_a_burst_and_again_after_it_was_taken) {
  EventQueue queue;
  int n_wakes = 0;
  queue.on_arrival([&] { n_wakes += queue.size() > 0 ? 1 : 0; });
  for (int i = 0; i < 5; ++i) queue.push(Held{});
  EXPECT_EQ(n_wakes, 1);
  EXPECT_EQ(queue.take(2).size(), 2U);
  EXPECT_EQ(queue.take().size(), 3U);
  EXPECT_TRUE(queue.take().empty());
  queue.push(Held{});
  EXPECT_EQ(n_wakes, 2);
}

TEST(CommandQueue, wait_gives_commands_in_order_until_closed) {
  CommandQueue queue;
  std::vector<RunId> seen;
  std::thread engine_thread([&] {
    while (const std::optional<Command> command = queue.wait()) {
      seen.push_back(std::get<StopRun>(*command).run);
      if (seen.size() == 3) queue.close();
    }
  });
  for (RunId run = 1; run <= 3; ++run) queue.push(StopRun{run});
  engine_thread.join();
  EXPECT_EQ(seen, (std::vector<RunId>{1, 2, 3}));
  EXPECT_TRUE(queue.closed());
}

TEST(CommandQueue, close_wakes_a_waiter_and_drops_what_was_not_begun) {
  CommandQueue queue;
  std::thread closer([&] { queue.close(); });
  EXPECT_FALSE(queue.wait().has_value());
  closer.join();
  queue.push(StepOnce{});
  EXPECT_FALSE(queue.wait().has_value());
  EXPECT_TRUE(queue.try_take().has_value());
  EXPECT_FALSE(queue.try_take().has_value());
}

TEST(Clock, never_goes_back) {
  Nanoseconds last = now_ns();
  EXPECT_GE(last, 0);
  for (int i = 0; i < 10'000; ++i) {
    const Nanoseconds now = now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace engine
