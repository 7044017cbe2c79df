#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

#include <gtest/gtest.h>

#include "engine/event/timeline/lod.h"
#include "tests/support/streams.h"
#include "tests/support/work_time.h"

namespace engine {
namespace {

struct Totals {
  std::int64_t n = 0, rejected = 0, errors = 0, pool_hits = 0;
  Nanoseconds busy = 0;
  bool operator==(const Totals&) const = default;
};

void add(Totals& totals, const Slice& slice) {
  ++totals.n;
  totals.rejected += (slice.flags & kFlagRejected) != 0;
  totals.errors += (slice.flags & kFlagError) != 0;
  totals.pool_hits += (slice.flags & kFlagPoolHit) != 0;
  totals.busy += slice.end - slice.start;
}

void add(Totals& totals, const Bucket& bucket) {
  totals.n += bucket.n_slices;
  totals.rejected += bucket.n_rejected;
  totals.errors += bucket.n_errors;
  totals.pool_hits += bucket.n_pool_hits;
  totals.busy += bucket.busy;
}

/// Nearly back-to-back slices of 1 to 41 us, some of rare kinds, and occasionally one of a second.
std::vector<Slice> synthetic_slices(int n_slices, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<Slice> slices;
  Nanoseconds t = 0;
  for (int i = 0; i < n_slices; ++i) {
    const Nanoseconds gap = random() % 5'000;
    const Nanoseconds length = i % 50'000 == 777 ? 1'000'000'000 : 1'000 + random() % 40'000;
    const std::uint8_t flags = i % 9'973 == 0 ? 1 << (random() % 3) : 0;
    const SliceKind kind = random() % 10 < 7 ? SliceKind::Forward : SliceKind::Propose;
    slices.push_back(
        {.start = t + gap, .end = t + gap + length, .step = i, .kind = kind, .flags = flags});
    t += gap + length;
  }
  return slices;
}

LodLane lane_of(const std::vector<Slice>& slices) {
  LodLane lane;
  for (const Slice& slice : slices) lane.add(slice);
  return lane;
}

LodLane synthetic(int n_slices, unsigned seed = 1) {
  return lane_of(synthetic_slices(n_slices, seed));
}

Totals totals_of(const VisibleLane& visible) {
  Totals totals;
  for (const Slice& slice : visible.slices) add(totals, slice);
  for (const Bucket& bucket : visible.buckets) add(totals, bucket);
  return totals;
}

TEST(Lod, totals_of_every_level_equal_those_of_the_slices) {
  const std::vector<Slice> made = synthetic_slices(60'000);
  const LodLane lane = lane_of(made);
  Totals expected;
  for (const Slice& slice : made) add(expected, slice);
  for (int level = lane.lowest_level(); level < kLevels; ++level) {
    Totals found;
    for (const Bucket& bucket : lane.buckets(level)) {
      add(found, bucket);
      ASSERT_LE(bucket.busy, bucket_width(level)) << "slices of this lane do not overlap";
    }
    for (const Slice& slice : lane.long_slices(level)) add(found, slice);
    EXPECT_EQ(found, expected) << "level " << level;
    EXPECT_TRUE(std::ranges::is_sorted(lane.buckets(level), {}, &Bucket::index));
  }
}

// Worked out by hand at the lowest levels: 65,536 and 262,144 ns wide.
TEST(Lod, a_bucket_counts_starts_and_the_time_inside_it) {
  LodLane lane;
  lane.add({.start = 100, .end = 1'100, .kind = SliceKind::Propose, .flags = kFlagRejected});
  lane.add({.start = 60'000, .end = 70'000, .flags = kFlagPoolHit});  // 5,536 ns, then 4,464
  lane.add({.start = 131'072, .end = 196'608, .flags = kFlagError});  // as wide as a bucket
  lane.add({.start = 200'000, .end = 200'000});                       // of length zero
  lane.add({.start = 300'000, .end = 310'000, .kind = SliceKind::Commit});
  const auto shown = [](const std::vector<Bucket>& buckets) {
    std::vector<std::array<std::int64_t, 6>> rows;
    for (const Bucket& b : buckets)
      rows.push_back({b.index, b.n_slices, b.busy, b.n_rejected, b.n_pool_hits, b.n_errors});
    return rows;
  };
  using Rows = std::vector<std::array<std::int64_t, 6>>;
  EXPECT_EQ(shown(lane.buckets(0)), (Rows{{0, 2, 6'536, 1, 1, 0},
                                          {1, 0, 4'464, 0, 0, 0},
                                          {3, 1, 0, 0, 0, 0},
                                          {4, 1, 10'000, 0, 0, 0}}));
  EXPECT_EQ(shown(lane.buckets(1)), (Rows{{0, 4, 76'536, 1, 1, 1}, {1, 1, 10'000, 0, 0, 0}}));
  ASSERT_EQ(lane.long_slices(0).size(), 1U);
  EXPECT_EQ(lane.long_slices(0)[0].start, 131'072);
  EXPECT_TRUE(lane.long_slices(1).empty());
  EXPECT_EQ(lane.buckets(0)[0].kind, SliceKind::Forward) << "5,536 ns of it against 1,000";
  EXPECT_EQ(lane.buckets(1)[1].kind, SliceKind::Commit);
}

TEST(Lod, a_single_slice_is_visible_at_every_zoom) {
  LodLane lane;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint8_t flags = i == 123'456 ? kFlagRejected : 0;
    lane.add({.start = i * 10'000, .end = i * 10'000 + 9'000, .step = i, .flags = flags});
  }
  for (const double px : {1.0, 5.0, 100.0, 1'920.0, 100'000.0, 10'000'000.0}) {
    EXPECT_EQ(totals_of(lane.visible(0, lane.end(), px)).rejected, 1) << px;
  }
}

TEST(Lod, drawing_needs_a_few_items_per_pixel) {
  const LodLane lane = synthetic(300'000);
  for (double zoom = 1; zoom < 1e7; zoom *= 3) {
    const auto length = static_cast<Nanoseconds>(static_cast<double>(lane.end()) / zoom);
    const Nanoseconds t0 = lane.end() / 3;
    const VisibleLane visible = lane.visible(t0, t0 + std::max<Nanoseconds>(length, 1), 1'500);
    EXPECT_LE(visible.slices.size() + visible.buckets.size(), 1'100U) << "zoom " << zoom;
    EXPECT_GE(visible.slices.size() + visible.buckets.size(), 1U) << "zoom " << zoom;
  }
}

TEST(Lod, wide_slices_are_exact_and_the_enclosing_one_is_found) {
  LodLane lane;
  lane.add({.start = 0, .end = 1'000'000, .step = 0});
  lane.add({.start = 1'000'000, .end = 2'000'000, .step = 1});
  const VisibleLane inside = lane.visible(400'000, 400'010, 1'000);
  ASSERT_EQ(inside.slices.size(), 1U);
  EXPECT_EQ(inside.slices[0].step, 0);
  EXPECT_TRUE(lane.visible(3'000'000, 4'000'000, 100).slices.empty());
  EXPECT_TRUE(lane.visible(5, 5, 100).slices.empty());
  EXPECT_TRUE(LodLane().visible(0, 100, 100).slices.empty());
}

TEST(Lod, the_dominant_kind_has_the_majority_of_the_time) {
  LodLane lane;
  for (int i = 0; i < 20'000; ++i) {
    const bool forward = i % 3 != 0;
    lane.add({.start = i * 300,
              .end = i * 300 + 300,
              .kind = forward ? SliceKind::Forward : SliceKind::Commit});
  }
  for (const Bucket& bucket : lane.buckets(2)) EXPECT_EQ(bucket.kind, SliceKind::Forward);
}

TEST(Lod, slices_out_of_order_stay_in_the_lane) {
  LodLane lane;
  lane.add({.start = 500'000, .end = 600'000});
  lane.add({.start = 100, .end = 200});
  lane.add({.start = 700'000, .end = 650'000});
  EXPECT_EQ(lane.slices().size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(lane.slices(), {}, &Slice::start));
}

TEST(Lod, every_level_is_complete_while_growing) {
  const LodLane source = synthetic(60'000, 9);
  LodLane growing;
  Totals expected;
  for (std::size_t i = 0; i < source.slices().size(); ++i) {
    growing.add(source.slices()[i]);
    add(expected, source.slices()[i]);
    if (i % 1'013 != 0) continue;
    for (int level = growing.lowest_level(); level < kLevels; ++level) {
      Totals found;
      for (const Bucket& bucket : growing.buckets(level)) add(found, bucket);
      for (const Slice& slice : growing.long_slices(level)) add(found, slice);
      ASSERT_EQ(found, expected) << "level " << level << " after " << i;
    }
  }
}

TEST(Lod, a_sparse_lane_drops_levels_but_no_slice) {
  LodLane lane;
  constexpr int kSteps = 50'000;
  for (int i = 0; i < kSteps; ++i) {
    const Nanoseconds start = Nanoseconds{5'000'000} * i;  // 50 us of work every 5 ms
    lane.add({.start = start, .end = start + 50'000, .step = i});
  }
  EXPECT_GT(lane.lowest_level(), 2);
  EXPECT_LT(lane.n_buckets(), kSteps / 2) << "else one bucket per slice at every level";
  for (const double px : {1.0, 100.0, 1'900.0, 40'000.0}) {
    const VisibleLane visible = lane.visible(0, lane.end(), px);
    EXPECT_EQ(totals_of(visible).n, kSteps) << px;
    EXPECT_EQ(totals_of(visible).busy, Nanoseconds{50'000} * kSteps) << px;
    EXPECT_LE(visible.slices.size() + visible.buckets.size(), std::max(64.0, px)) << px;
  }
  EXPECT_THROW(lane.buckets(0), ContractError);
}

TEST(Lod, a_long_slice_before_short_ones_is_found) {
  LodLane lane;
  lane.add({.start = 0, .end = 10, .step = 0});
  lane.add({.start = 20, .end = 9'000, .step = 1});  // encloses the next two
  lane.add({.start = 30, .end = 40, .step = 2});
  lane.add({.start = 50, .end = 60, .step = 3});
  const VisibleLane middle = lane.visible(5'000, 6'000, 100);
  ASSERT_EQ(middle.slices.size(), 1U);
  EXPECT_EQ(middle.slices[0].step, 1);
  EXPECT_EQ(lane.end(), 9'000);
}

TEST(Lod, a_bucket_holds_the_time_of_discarded_rows) {
  LodLane lane;
  for (int i = 0; i < 1'000; ++i) {
    lane.add({.start = i * 1'000, .end = i * 1'000 + 1'000, .step = i, .percent = 75});
  }
  const VisibleLane visible = lane.visible(0, lane.end(), 50);
  Nanoseconds wasted = 0;
  for (const Bucket& bucket : visible.buckets) wasted += bucket.wasted;
  ASSERT_TRUE(visible.slices.empty());
  EXPECT_EQ(wasted, 750'000);
}

TEST(Lod, a_million_slices_are_built_and_queried_in_time) {
  const LodLane source = synthetic(1'000'000);
  const double begun = ::test::worked_ms();
  LodLane lane;
  for (const Slice& slice : source.slices()) lane.add(slice);
  const double build_ms = ::test::worked_ms() - begun;
  const double asked = ::test::worked_ms();
  std::size_t n = 0;
  for (int i = 0; i < 100; ++i) {
    const Nanoseconds length = lane.end() >> (i % 20);
    n += lane.visible(lane.end() / 2, lane.end() / 2 + length, 1'900).buckets.size();
  }
  const double query_ms = (::test::worked_ms() - asked) / 100;
  RecordProperty("build_ms", std::to_string(build_ms));
  RecordProperty("query_ms", std::to_string(query_ms));
  std::printf("1,000,000 slices: built in %.1f ms, %.3f ms a query\n", build_ms, query_ms);
  EXPECT_GT(n, 0U);
  // The budgets are 100 ms and 2 ms on a quiet machine; ten times that where caches and cores are
  // shared.
  EXPECT_LT(build_ms, 1000 * ::test::kSlower);
  EXPECT_LT(query_ms, 20 * ::test::kSlower);
}

RunRecord small_run(int n_steps) {
  Timeline timeline;
  timeline.apply(test::model_loaded());
  for (const Event& event : test::run_events({.n_steps = n_steps})) timeline.apply(event);
  return timeline.runs()[0];
}

// A draft model reads the prompt before the first step that drafts (Stepper::propose()).
TEST(RunLod, a_late_draft_prefill_is_a_phase) {
  Timeline timeline;
  timeline.apply(test::model_loaded());
  Nanoseconds ended = 0;
  const auto reading = [&](Nanoseconds t, int done) {
    return Phase{.t = t, .run = 1, .name = "draft prefill", .done = done, .total = 5};
  };
  for (const Event& event : test::run_events({.n_steps = 3})) {
    timeline.apply(event);
    if (const auto* e = std::get_if<StepEnded>(&event); e && e->step == 1) {
      ended = e->t;
      timeline.apply(reading(ended + 100, 0));
      timeline.apply(reading(ended + 900, 5));
    }
  }
  EXPECT_EQ(timeline.n_inconsistent(), 0);
  const RunRecord& run = timeline.runs()[0];
  const std::vector<Slice> slices = phase_slices(run, Clock::Wall);
  ASSERT_EQ(slices.size(), 3U) << "the target's prompt, the steps, and the draft's prompt within";
  EXPECT_EQ(slices[1].kind, SliceKind::Decode);
  EXPECT_EQ(slices[2].kind, SliceKind::Prefill);
  EXPECT_EQ(slices[2].start, ended + 100);
  EXPECT_EQ(slices[2].end, ended + 900);
  EXPECT_GT(slices[1].end, slices[2].end);
  EXPECT_EQ(label_of(run, LaneKind::Phases, slices[2]), "draft prefill");
}

TEST(RunLod, lanes_hold_the_parts_of_every_step) {
  const RunRecord run = small_run(4);
  RunLod lod(Clock::Wall);
  lod.update(run);
  EXPECT_EQ(lod.lane(LaneKind::Target).slices().size(), 4U);
  EXPECT_EQ(lod.lane(LaneKind::Target).slices()[1].start, 1'161'000);
  EXPECT_EQ(lod.lane(LaneKind::Target).slices()[1].end, 1'241'000);
  EXPECT_EQ(lod.lane(LaneKind::Verify).slices()[0].flags, kFlagRejected);
  EXPECT_EQ(lod.lane(LaneKind::Target).slices()[0].flags, kFlagRejected);
  EXPECT_EQ(lod.lane(LaneKind::Pool).slices()[1].kind, SliceKind::PoolHit);
  EXPECT_EQ(lod.lane(LaneKind::Phases).slices()[0].kind, SliceKind::Prefill);
  const StepHead step = run.steps.head(0);
  EXPECT_EQ(lod.lane(LaneKind::Target).slices()[0].percent,
            100 - 100 * step.n_tokens / step.n_rows);
  EXPECT_EQ(lod.lane(LaneKind::Pool).slices()[1].flags & kFlagPoolAdded,
            run.steps.head(1).n_pool_added > 0 ? kFlagPoolAdded : 0);
  EXPECT_EQ(label_of(run, LaneKind::Verify, lod.lane(LaneKind::Verify).slices()[1]),
            "verify accepted 2/2");
}

TEST(RunLod, each_clock_lays_out_the_steps_differently) {
  const RunRecord run = small_run(4);
  const auto target_of = [&](Clock clock) {
    RunLod lod(clock);
    lod.update(run);
    return lod.lane(LaneKind::Target).slices()[2];
  };
  EXPECT_EQ(target_of(Clock::Compute).start, 2 * 83'500 + 1'000);
  EXPECT_EQ(target_of(Clock::Step).start / kUnit, 2);
  EXPECT_LT(target_of(Clock::Step).end, 3 * kUnit);
  EXPECT_EQ(target_of(Clock::Position).start / kUnit, 6);  // after 2 + 1 + 3 positions
}

TEST(RunLod, a_lane_built_late_equals_a_grown_one) {
  Timeline timeline;
  timeline.apply(test::model_loaded());
  RunLod late(Clock::Compute), grown(Clock::Compute);
  for (const Event& event : test::run_events({.n_steps = 30})) {
    timeline.apply(event);
    late.update(timeline.runs()[0], lane_bit(LaneKind::Target));
    grown.update(timeline.runs()[0]);
  }
  EXPECT_EQ(late.lane(LaneKind::Target).slices().size(), 30U);
  EXPECT_TRUE(late.lane(LaneKind::Verify).slices().empty());
  late.update(timeline.runs()[0], lane_bit(LaneKind::Verify) | lane_bit(LaneKind::Target));
  for (const LaneKind kind : {LaneKind::Target, LaneKind::Verify}) {
    const auto &a = late.lane(kind).slices(), &b = grown.lane(kind).slices();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].start, b[i].start);
  }
}

TEST(RunLod, incremental_growth_equals_building_at_once) {
  Timeline timeline;
  timeline.apply(test::model_loaded());
  RunLod live(Clock::Wall), whole(Clock::Wall);
  for (const Event& event : test::run_events({.n_steps = 30})) {
    timeline.apply(event);
    live.update(timeline.runs()[0]);
  }
  whole.update(timeline.runs()[0]);
  for (int kind = 0; kind < kLaneKinds; ++kind) {
    const auto a = live.lane(static_cast<LaneKind>(kind)).slices();
    const auto b = whole.lane(static_cast<LaneKind>(kind)).slices();
    ASSERT_EQ(a.size(), b.size()) << kind;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].start, b[i].start);
      EXPECT_EQ(a[i].end, b[i].end);
    }
  }
  EXPECT_EQ(live.end(), whole.end());
}

}  // namespace
}  // namespace engine
