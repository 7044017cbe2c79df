#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "engine/event/clock.h"
#include "engine/event/queue.h"

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

TEST(EventQueue, wakes_once_per_burst) {
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

TEST(EventQueue, an_unsubscribed_listener_is_not_called) {
  EventQueue queue;
  std::promise<void> rings, hangs_up, goes_on;
  std::atomic<bool> is_deaf = false;
  queue.on_arrival([&] {
    rings.set_value();
    goes_on.get_future().wait();
  });
  std::thread engine_thread([&] { queue.push(Held{}); });
  rings.get_future().wait();
  std::thread window([&] {
    hangs_up.set_value();
    queue.on_arrival({});
    is_deaf = true;
  });
  hangs_up.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_deaf) << "the listener is still called";
  goes_on.set_value();
  engine_thread.join();
  window.join();
  EXPECT_EQ(queue.size(), 1U);
}

TEST(EventQueue, a_listener_blocks_no_other_queue) {
  EventQueue queue, other;
  std::promise<void> rings, other_rings, goes_on;
  queue.on_arrival([&] {
    rings.set_value();
    goes_on.get_future().wait();
  });
  std::thread engine_thread([&] { queue.push(Held{}); });
  rings.get_future().wait();
  std::thread other_thread([&] {
    other.on_arrival([&] { other_rings.set_value(); });
    other.push(Held{});
  });
  EXPECT_EQ(other_rings.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  goes_on.set_value();
  engine_thread.join();
  other_thread.join();
}

Event verified_of(RunId run, StepId step, std::size_t n_rows) {
  return Verified{.t = 10 * step,
                  .run = run,
                  .step = step,
                  .fate = std::vector<RowFate>(n_rows),
                  .picked = std::vector<TokenId>(n_rows, 7),
                  .logp = std::vector<float>(n_rows, -1),
                  .margin = std::vector<float>(n_rows, 2)};
}

TEST(EventQueue, payload_over_budget_is_dropped_and_reported_once) {
  EventQueue queue(1000);  // one verification of 100 rows has 800 bytes
  for (StepId step = 0; step < 50; ++step) queue.push(verified_of(1, step, 100));
  EXPECT_LE(queue.payload_bytes(), 1000U);
  const std::vector<Event> events = queue.take();
  ASSERT_EQ(events.size(), 51U) << "all verifications and one report";
  EXPECT_EQ(std::get<Verified>(events[0]).logp.size(), 100U);
  const auto& bare = std::get<Verified>(events[1]);
  EXPECT_TRUE(bare.logp.empty() && bare.margin.empty());
  EXPECT_EQ(bare.fate.size(), 100U) << "structure is never dropped";
  EXPECT_EQ(bare.picked.size(), 100U);
  const auto& drop = std::get<PayloadDropped>(events[2]);
  EXPECT_EQ(drop.kind, "probabilities");
  EXPECT_EQ(drop.first_step, 1);
  EXPECT_EQ(drop.last_step, 49);
  EXPECT_EQ(drop.n_bytes, 49 * 800);
  EXPECT_EQ(queue.payload_bytes(), 0U);
}

TEST(EventQueue, a_report_names_only_steps_with_dropped_payload) {
  EventQueue queue(1000);
  queue.push(verified_of(1, 0, 100));
  queue.push(verified_of(1, 1, 100));  // dropped
  queue.push(verified_of(1, 2, 20));   // 160 bytes fit
  queue.push(verified_of(1, 3, 100));  // dropped
  queue.push(verified_of(2, 3, 100));  // dropped, of another run
  std::vector<std::array<int, 3>> dropped;
  for (const Event& event : queue.take()) {
    if (const auto* drop = std::get_if<PayloadDropped>(&event)) {
      dropped.push_back({static_cast<int>(drop->run), drop->first_step, drop->last_step});
    }
  }
  EXPECT_EQ(dropped, (std::vector<std::array<int, 3>>{{1, 1, 1}, {1, 3, 3}, {2, 3, 3}}));
}

TEST(EventQueue, a_report_taken_by_the_window_is_immutable) {
  EventQueue queue(0);
  queue.push(verified_of(1, 0, 10));
  queue.push(verified_of(1, 1, 10));
  const std::vector<Event> first = queue.take(2);
  EXPECT_EQ(std::get<PayloadDropped>(first[1]).last_step, 1);
  queue.push(verified_of(1, 2, 10));
  const std::vector<Event> second = queue.take();
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(std::get<PayloadDropped>(second[2]).first_step, 2);
}

TEST(EventQueue, a_dropped_block_state_is_reported_in_place) {
  EventQueue queue(100);
  for (int i = 0; i < 1000; ++i) {
    queue.push(BlockRefined{.t = i, .run = 1, .step = i, .tokens = std::vector<TokenId>(16)});
    queue.push(Committed{.t = i, .run = 1, .step = i, .tokens = {1}});
  }
  std::size_t n_committed = 0, n_drops = 0;
  for (const Event& event : queue.take()) {
    n_committed += std::holds_alternative<Committed>(event);
    n_drops += std::holds_alternative<PayloadDropped>(event);
    EXPECT_FALSE(std::holds_alternative<BlockRefined>(event));
  }
  EXPECT_EQ(n_committed, 1000U);
  EXPECT_EQ(n_drops, 1U);
}

TEST(CommandQueue, wait_returns_commands_in_order_until_closed) {
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

TEST(CommandQueue, close_wakes_a_waiter_and_drops_pending_commands) {
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
