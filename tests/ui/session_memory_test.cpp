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

/// Steps of one lane with typical numbers of rows and committed tokens.
struct LongLane {
  RunId run;
  std::string decoder;
  int n_rows, n_kept;
  RowTag::Kind kind;
  int pos = 4;
  StepId step = 0;

  void push_step(engine::EventSink& into, Nanoseconds t) {
    const auto n = static_cast<std::size_t>(n_rows), kept = static_cast<std::size_t>(n_kept);
    into.push(engine::StepBegun{t, run, step, 1'000'000LL * step, pos, n_rows});
    engine::Drafted drafted{.t = t + 1, .run = run, .step = step};
    engine::Verified verified{.t = t + 900, .run = run, .step = step};
    for (std::size_t row = 0; row < n; ++row) {
      const auto at = static_cast<int>(row);
      drafted.tree.token.push_back((pos + at * 37) % 4000);
      drafted.tree.parent.push_back(at - 1);
      drafted.tree.tag.push_back(row == 0 ? RowTag{} : RowTag{kind, std::int16_t(at), 0});
      verified.fate.push_back(row == 0      ? RowFate::Context
                              : row <= kept ? RowFate::Accepted
                                            : RowFate::Rejected);
      verified.picked.push_back((pos + at) % 4000);
      verified.logp.push_back(-0.5F), verified.margin.push_back(1.5F);
    }
    into.push(std::move(drafted));
    into.push(std::move(verified));
    if (kind == RowTag::Kind::Block) {
      into.push(engine::BlockRefined{.t = t + 901,
                                     .run = run,
                                     .step = step,
                                     .block = step / 6,
                                     .iteration = step % 6,
                                     .first_pos = pos,
                                     .tokens = std::vector<engine::TokenId>(n, 1234),
                                     .n_final = n_kept});
    }
    if (decoder == "lookahead") {
      engine::PoolChanged pool{.t = t + 901, .run = run, .step = step, .n_ngrams = 1000};
      for (int i = 0; i < 15; ++i) {
        const int key = (step * 15 + i) % 20'000;
        pool.added.push_back({.first = key % 4000, .rest = {key, 2, 3, 4}, .born = step});
        const int old = (key + 10'000) % 20'000;
        pool.evicted.push_back({.first = old % 4000, .rest = {old, 2, 3, 4}});
      }
      into.push(std::move(pool));
    }
    into.push(engine::Committed{.t = t + 902,
                                .run = run,
                                .step = step,
                                .first_pos = pos,
                                .tokens = std::vector<engine::TokenId>(kept, 99),
                                .status = std::vector(kept, engine::TokenStatus::Accepted),
                                .origin = std::vector(kept, RowTag{kind, 1, 1})});
    into.push(engine::StepEnded{t + 990, run, step, 10, 950, 20, 9, pos + n_kept});
    pos += n_kept;
    ++step;
  }
};

std::vector<LongLane> lanes() {
  using Kind = RowTag::Kind;
  return {{1, "ar", 1, 1, Kind::Current},
          {2, "jacobi", 16, 2, Kind::Block},
          {3, "lookahead", 60, 2, Kind::Guess},
          {4, "prompt-lookup", 11, 2, Kind::Guess}};
}

/// A race of four lanes with `n_events` events, taken in small parts.
void feed(Session& session, std::int64_t n_events) {
  engine::EventQueue queue;
  engine::ModelLoaded model{.t = 1, .model = 1, .name = "toy", .vocab_size = 32'000};
  for (int i = 0; i < model.vocab_size; ++i) model.pieces.push_back(std::to_string(i));
  queue.push(std::move(model));
  std::vector<LongLane> all = lanes();
  for (const LongLane& lane : all) {
    queue.push(engine::RunStarted{.t = 2,
                                  .run = lane.run,
                                  .race = 1,
                                  .lane = static_cast<int>(lane.run) - 1,
                                  .model = 1,
                                  .decoder = lane.decoder,
                                  .prompt_tokens = {1, 2, 3, 4}});
  }
  const engine::Timeline& timeline = session.live().timeline;
  for (Nanoseconds t = 10; timeline.n_events() < n_events;) {
    for (int i = 0; i < 50; ++i) {
      for (LongLane& lane : all) lane.push_step(queue, t += 1000);
    }
    session.take(queue.take());
  }
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
