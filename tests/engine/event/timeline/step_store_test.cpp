#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "engine/event/timeline/step_store.h"
#include "engine/event/timeline/timeline_events.h"
#include "tests/support/streams.h"

namespace engine {
namespace {

using test::bytes_of;

/// All fields of a step, as the bytes of a recording.
std::string bytes_of(const StepRecord& step) {
  std::string bytes = bytes_of(Event(step.begun)) + bytes_of(Event(step.drafted)) +
                      bytes_of(Event(step.verified)) + bytes_of(Event(step.committed)) +
                      bytes_of(Event(step.ended));
  for (const BlockRefined& block : step.blocks) bytes += bytes_of(Event(block));
  if (step.pool) bytes += bytes_of(Event(*step.pool));
  for (const bool flag : {step.has_drafted, step.has_verified, step.has_committed, step.complete}) {
    bytes += flag ? '1' : '0';
  }
  return bytes;
}

/// A step with unusual values in every field, different for each n.
StepRecord odd_step(StepId n) {
  std::mt19937 random(static_cast<unsigned>(n));
  const auto number = [&](int below) { return static_cast<int>(random() % unsigned(below)); };
  const Nanoseconds t = 5'000'000'000'000 + n * 1'000'003LL;
  StepRecord step{.begun = {t, 9, n, 77LL * n, number(5000), number(300)}};
  step.ended = {t + 90'000, 9, n, 1, -2, Nanoseconds{1} << 50, 4, number(9000)};
  const int n_rows = number(70);
  step.has_drafted = n % 5 != 0, step.has_verified = n % 7 != 0, step.has_committed = n % 3 != 0;
  step.complete = n % 11 != 0;
  if (step.has_drafted) {
    step.drafted = {.t = t - 3, .run = 9, .step = n};
    for (int row = 0; row < n_rows; ++row) {
      const RowTag tag{RowTag::Kind(number(6)), std::int16_t(number(65536)), std::int16_t(-row)};
      step.drafted.tree.token.push_back(number(1 << 30));
      step.drafted.tree.parent.push_back(row - 1);
      step.drafted.tree.tag.push_back(tag);
    }
    if (n % 2 == 0) step.drafted.q.assign(static_cast<std::size_t>(n_rows), 0.25F);
    for (int row = 0; row < (n % 3 ? 0 : n_rows); ++row)
      step.drafted.sources.push_back({.kind = GuessSource::Kind(number(5)),
                                      .run = 0xFFFF'FFFFU,
                                      .pos = -row,
                                      .n_seen = number(9),
                                      .n_context = 1 << 30});
    for (int i = 0; i < n % 3; ++i) step.drafted.choices.push_back(number(300));
    for (int i = 0; i < n % 4; ++i)
      step.drafted.forwards.push_back({.begun = i * 900'001LL, .ended = 1LL << 40, .n_rows = n});
  }
  if (step.has_verified) {
    step.verified = {.t = t + 5, .run = 9, .step = n, .n_proposed = number(9), .n_unused = 3};
    if (n % 5 == 2) step.verified.exchange = {{.n_bytes = n, .time = 7, .forward = {n, 3, 4}}};
    for (int row = 0; row < n_rows; ++row) {
      step.verified.fate.push_back(RowFate(number(5)));
      step.verified.picked.push_back(number(100'000));
      step.verified.logp.push_back(-1.5F * static_cast<float>(row));
      step.verified.margin.push_back(1e-30F);
      step.verified.uniform.push_back(0.25F);
      step.verified.keep.push_back(n % 2 == 0 ? 0.5F : 1);
      step.verified.p.push_back(n % 2 == 0 ? -1 : 1e-9F);
      if (n % 9 == 1) step.verified.probe.push_back(static_cast<float>(row) - 1);
      if (row % 8 == 1)
        step.verified.rejection_details.push_back(
            {.row = row, .token = {n, 5}, .p = {0.25F, 0}, .q = {1, 0}, .residual = {}});
    }
  }
  if (step.has_committed) {
    step.committed = {.t = t + 7, .run = 9, .step = n, .first_pos = number(1 << 20)};
    step.committed.tokens = {1, -1, 1 << 30};
    step.committed.status = {TokenStatus::Accepted, TokenStatus::Bonus, TokenStatus::Plain};
    step.committed.origin = {{RowTag::Kind::Guess, 1, 2}, {}, {}};
  }
  const PoolNgram ngram{
      .first = n, .rest = {1, 2, 3}, .born = kBornInPrompt, .n_hits = 4'000'000'000U};
  if (n % 4 == 1) {
    step.pool = PoolChanged{.t = t + 8, .run = 9, .step = n, .added = {ngram, {}}, .n_keys = 3};
  }
  for (int i = 0; i < n % 3; ++i) {
    step.blocks.push_back({.t = t - 100 + i, .run = 9, .step = n - 1, .tokens = {5, 6, n}});
  }
  return step;
}

TEST(StepStore, a_packed_step_is_read_back_unchanged) {
  StepStore store;
  constexpr StepId kSteps = 200;
  for (StepId n = 0; n < kSteps; ++n) store.push_back(odd_step(n));
  ASSERT_EQ(store.size(), 200U);
  for (StepId n = kSteps; n-- > 0;) {
    ASSERT_EQ(bytes_of(store[static_cast<std::size_t>(n)]), bytes_of(odd_step(n))) << n;
  }
  StepId n = 0;
  for (const StepRecord& step : store) ASSERT_EQ(bytes_of(step), bytes_of(odd_step(n++)));
  EXPECT_EQ(n, kSteps);
}

TEST(StepStore, a_header_summarises_its_step) {
  StepStore store;
  for (StepId n = 0; n < 100; ++n) store.push_back(odd_step(n));
  for (std::size_t i = 0; i < store.size(); ++i) {
    const StepRecord step = odd_step(static_cast<StepId>(i));
    const StepHead head = store.head(i);
    ASSERT_EQ(bytes_of(Event(head.begun)), bytes_of(Event(step.begun)));
    ASSERT_EQ(bytes_of(Event(head.ended)), bytes_of(Event(step.ended)));
    ASSERT_EQ(head.n_proposed, step.verified.n_proposed);
    ASSERT_EQ(head.n_tokens, static_cast<int>(step.committed.tokens.size()));
    ASSERT_EQ(head.n_pool_hits, step.has_committed ? 1 : 0);
    ASSERT_EQ(head.n_pool_added, step.pool ? 2 : 0);
    ASSERT_EQ(head.n_blocks, static_cast<int>(step.blocks.size()));
    ASSERT_EQ(head.n_rows, step.has_drafted ? step.drafted.tree.n_rows() : step.begun.n_rows);
    ASSERT_EQ(head.complete, step.complete);
    ASSERT_EQ(head.has_pool, step.pool.has_value());
  }
}

TEST(StepStore, the_lists_of_the_pool_are_read_alone) {
  StepStore store;
  for (StepId n = 0; n < 100; ++n) store.push_back(odd_step(n));
  for (std::size_t i = 0; i < store.size(); ++i) {
    const StepRecord step = odd_step(static_cast<StepId>(i));
    const std::optional<PoolChanged> lists = store.pool_lists(i);
    ASSERT_EQ(lists.has_value(), step.pool.has_value()) << i;
    if (!lists) continue;
    EXPECT_EQ(lists->step, step.pool->step);
    PoolChanged of_step = *step.pool, alone = *lists;
    alone.t = of_step.t, alone.run = of_step.run;
    alone.n_keys = of_step.n_keys, alone.n_ngrams = of_step.n_ngrams;
    EXPECT_EQ(bytes_of(Event(alone)), bytes_of(Event(of_step))) << i;
  }
  store.drop_oldest_payload();
  EXPECT_FALSE(store.pool_lists(1).has_value());
  EXPECT_TRUE(store.pool_lists(97).has_value());
}

TEST(StepStore, a_packed_step_can_be_replaced) {
  StepStore store;
  for (StepId n = 0; n < 150; ++n) store.push_back(odd_step(n));
  store.replace(70, odd_step(1000));
  store.replace(149, odd_step(1001));
  for (std::size_t i = 0; i < store.size(); ++i) {
    const StepId n = i == 70 ? 1000 : i == 149 ? 1001 : static_cast<StepId>(i);
    ASSERT_EQ(bytes_of(store[i]), bytes_of(odd_step(n))) << i;
  }
  EXPECT_THROW(store.at(150), ContractError);
}

TEST(StepStore, the_oldest_payload_is_dropped_first) {
  StepStore store;
  for (StepId n = 0; n < 300; ++n) store.push_back(odd_step(n));
  const std::size_t before = store.payload_bytes();
  const std::vector<PayloadDropped> drops = store.drop_oldest_payload();
  ASSERT_EQ(drops.size(), kPayloadKinds);
  std::int64_t n_bytes = 0;
  for (const PayloadDropped& drop : drops) {
    EXPECT_EQ(drop.first_step, 0);
    EXPECT_EQ(drop.last_step, static_cast<StepId>(StepStore::kPageSteps) - 1);
    n_bytes += drop.n_bytes;
  }
  EXPECT_EQ(before - store.payload_bytes(), static_cast<std::size_t>(n_bytes));
  const StepRecord step = store[37], was = odd_step(37);
  EXPECT_TRUE(step.verified.logp.empty() && step.blocks.empty() && step.pool->added.empty());
  EXPECT_EQ(step.verified.picked, was.verified.picked);
  EXPECT_EQ(step.drafted.tree.token, was.drafted.tree.token);
  EXPECT_EQ(step.pool->n_keys, 3);
  EXPECT_EQ(bytes_of(store[64]), bytes_of(odd_step(64))) << "the next page is complete";
  while (!store.drop_oldest_payload().empty()) {
  }
  EXPECT_EQ(store.payload_bytes(), 0U);
  store.push_back(odd_step(300));
  store.push_back(odd_step(301));
  EXPECT_EQ(bytes_of(store[300]), bytes_of(odd_step(300))) << "later payload is kept again";
}

TEST(Timeline, payload_over_budget_is_dropped_oldest_first) {
  Timeline timeline;
  timeline.set_payload_budget(20'000);
  timeline.apply(test::model_loaded());
  for (const RunId run : {1U, 2U}) {
    for (const Event& event : test::run_events({.run = run, .n_steps = 1000})) {
      timeline.apply(event);
    }
    EXPECT_LE(timeline.payload_bytes(), 20'000U);
  }
  EXPECT_GT(timeline.payload_bytes(), 10'000U);
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  const RunRecord& first = *timeline.run(1);
  ASSERT_EQ(first.dropped.size(), 2U) << "one range per kind";
  EXPECT_EQ(first.dropped[0].kind, "probabilities");
  EXPECT_EQ(first.dropped[1].kind, "pool");
  EXPECT_EQ(first.dropped[0].first_step, 0);
  EXPECT_EQ(first.dropped[0].last_step, 999);
  EXPECT_LT(timeline.run(2)->dropped.at(0).last_step, 999);
  EXPECT_TRUE(first.steps[5].verified.logp.empty());
  EXPECT_EQ(timeline.run(2)->steps[999].verified.logp.size(), 3U);
  EXPECT_EQ(first.tokens.size(), 2000U);
  EXPECT_TRUE(first.tokens[7].has_logp) << "all facts of the output stay";
}

TEST(TimelineEvents, exported_events_equal_the_applied_ones) {
  std::vector<Event> events = {test::model_loaded(), Held{.t = 11, .held = true}, Held{.t = 12}};
  for (const RunId run : {1U, 2U}) {
    const std::string decoder = run == 1 ? "ar" : "lookahead";
    for (Event& event : test::run_events({.run = run, .decoder = decoder, .n_steps = 70})) {
      events.push_back(std::move(event));
    }
  }
  events.push_back(Queued{.t = 1'000'050, .run = 1, .resource = "target"});
  events.push_back(BlockRefined{.t = 1'000'060, .run = 2, .step = 0, .tokens = {3, 4}});
  events.push_back(Sampled{.t = 1'500'000, .period = 10, .device = "cpu", .busy_percent = 50});
  events.push_back(Notice{.t = 1'600'000, .text = "said"});
  events.push_back(Agreement{.t = 90'000'000, .run = 2, .baseline = 1, .n_compared = 9});
  std::ranges::stable_sort(events, {}, time_of);
  Timeline timeline;
  for (const Event& event : events) timeline.apply(event);
  ASSERT_EQ(timeline.n_inconsistent(), 0);
  EventList replayed;
  replay_events(timeline, replayed);
  std::multiset<std::string> expected, found;
  for (const Event& event : events) expected.insert(bytes_of(event));
  for (const Event& event : replayed.events) found.insert(bytes_of(event));
  EXPECT_EQ(replayed.events.size(), events.size());
  EXPECT_EQ(expected, found);
  EXPECT_TRUE(std::ranges::is_sorted(replayed.events, {}, time_of));
  Timeline again;
  for (const Event& event : replayed.events) again.apply(event);
  EXPECT_EQ(again.n_inconsistent(), 0) << again.inconsistencies()[0];
  EventList third;
  replay_events(again, third);
  ASSERT_EQ(third.events.size(), replayed.events.size());
  for (std::size_t i = 0; i < third.events.size(); ++i) {
    ASSERT_EQ(bytes_of(third.events[i]), bytes_of(replayed.events[i])) << i;
  }
}

}  // namespace
}  // namespace engine
