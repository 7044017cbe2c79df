// Limits the memory of events and of the data that panels prepare.
#include <malloc.h>
#include <unistd.h>
#include <cstdio>
#include <deque>
#include <filesystem>

#include <gtest/gtest.h>

#include "engine/event/queue.h"
#include "engine/event/recording/recording.h"
#include "engine/event/serialise.h"
#include "engine/event/timeline/lod.h"
#include "engine/event/timeline/timeline.h"
#include "tests/ui/support/long_race.h"
#include "ui/files/saving.h"
#include "ui/files/session.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/time/counters.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/text_cells.h"
#include "ui/shell/context.h"

namespace ui {
namespace {

using engine::Nanoseconds;
using engine::RowFate;
using engine::RowTag;
using engine::RunId;
using engine::StepId;

constexpr double kMegabyte = 1e6;

/// A race of four lanes with `n_events` events, taken in small parts.
void feed(Session& session, std::int64_t n_events) {
  streams::long_race(
      n_events, [&](std::vector<engine::Event> events) { session.take(std::move(events)); },
      [&] { return session.live().timeline.n_events(); });
}

double megabytes_in_use() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / kMegabyte;
}

TEST(Session, a_million_events_take_at_most_150_megabytes) {
  const double before = megabytes_in_use();
  auto session = std::make_unique<Session>();
  feed(*session, 1'000'000);
  const engine::Timeline& timeline = session->live().timeline;
  ASSERT_EQ(timeline.n_inconsistent(), 0) << timeline.inconsistencies()[0];
  const double held = static_cast<double>(timeline.bytes()) / kMegabyte;
  const double allocated = megabytes_in_use() - before;
  // Data that panels prepare.
  std::deque<RunTimes> times;
  std::deque<engine::RunLod> lods;
  for (const engine::RunRecord& run : timeline.runs()) {
    extend(times.emplace_back(), run);
    // The levels of detail that Compare needs, then those of one run on Live.
    lods.emplace_back(engine::Clock::Compute)
        .update(run, engine::lane_bit(engine::LaneKind::Target) |
                         engine::lane_bit(engine::LaneKind::Pool));
  }
  const engine::RunRecord& last = timeline.runs()[2];
  lods[2].update(last);
  RunCounters counters;
  extend(counters, last);
  Tally tally;
  advance(tally, last, last.steps.size());
  const std::vector<TextCell> cells = text_cells(timeline, last, last.steps.size(), true);
  const double with_panels = megabytes_in_use() - before;
  std::printf("1,000,000 events: %.1f MB held, %.1f MB allocated, %.1f MB with the panels' own\n",
              held, allocated, with_panels);
  const double payload = static_cast<double>(timeline.payload_bytes()) / kMegabyte;
  EXPECT_LT(held - payload, 100) << "limit: 100 bytes of structure per event";
  EXPECT_LE(timeline.payload_bytes(), timeline.payload_budget());
  if (allocated > 0) {  // 0 under a sanitizer, which has its own allocator
    EXPECT_LT(with_panels, 150);
    EXPECT_NEAR(held, allocated, 0.2 * allocated);
  }
  const engine::RunRecord& lookahead = *timeline.run(3);
  ASSERT_FALSE(lookahead.dropped.empty()) << "the payload exceeds the budget";
  EXPECT_EQ(lookahead.dropped[0].first_step, 0);
  EXPECT_EQ(lookahead.steps.back().verified.logp.size(), 60U) << "the newest payload is kept";
}

TEST(Session, saving_keeps_all_events) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("session_test." + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  Session session;
  engine::EventList list;
  {
    feed(session, 2'000);
    const std::string saved = session.save(folder / "live.pdrun")->result();
    engine::read_recording(saved, list);
    EXPECT_EQ(static_cast<std::int64_t>(list.events.size()), session.live().timeline.n_events());
    session.open(saved);
    const engine::Timeline& opened = session.shown().timeline;
    EXPECT_EQ(opened.n_inconsistent(), 0);
    ASSERT_EQ(opened.runs().size(), 4U);
    EXPECT_EQ(opened.run(3)->tokens.size(), session.live().timeline.run(3)->tokens.size());
    const std::string again = session.save(folder / "again.pdrun")->result();
    engine::EventList second;
    engine::read_recording(again, second);
    ASSERT_EQ(second.events.size(), list.events.size());
    for (std::size_t i = 0; i < second.events.size(); ++i) {
      std::string a, b;
      engine::encode(list.events[i], a), engine::encode(second.events[i], b);
      ASSERT_EQ(a, b) << i;
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ui
