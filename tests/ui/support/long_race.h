// A long race of four lanes, for tests of memory and time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/queue.h"

namespace streams {

/// Steps of one lane with typical numbers of rows and committed tokens.
struct LongLane {
  engine::RunId run;
  std::string decoder;
  int n_rows, n_kept;
  engine::RowTag::Kind kind;
  int pos = 4;
  engine::StepId step = 0;

  void push_step(engine::EventSink& into, engine::Nanoseconds t) {
    using engine::RowFate, engine::RowTag;
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

inline std::vector<LongLane> long_lanes() {
  using Kind = engine::RowTag::Kind;
  return {{1, "ar", 1, 1, Kind::Current},
          {2, "jacobi", 16, 2, Kind::Block},
          {3, "lookahead", 60, 2, Kind::Guess},
          {4, "prompt-lookup", 11, 2, Kind::Guess}};
}

/// Passes the events of a race of four lanes on in small parts, until `n_taken` returns `n_events`.
inline void long_race(std::int64_t n_events,
                      const std::function<void(std::vector<engine::Event>)>& take,
                      const std::function<std::int64_t()>& n_taken) {
  engine::EventQueue queue;
  engine::ModelLoaded model{.t = 1, .model = 1, .name = "toy", .vocab_size = 32'000};
  for (int i = 0; i < model.vocab_size; ++i) model.pieces.push_back(std::to_string(i));
  queue.push(std::move(model));
  std::vector<LongLane> all = long_lanes();
  for (const LongLane& lane : all) {
    queue.push(engine::RunStarted{.t = 2,
                                  .run = lane.run,
                                  .race = 1,
                                  .lane = static_cast<int>(lane.run) - 1,
                                  .model = 1,
                                  .decoder = lane.decoder,
                                  .prompt_tokens = {1, 2, 3, 4}});
  }
  for (engine::Nanoseconds t = 10; n_taken() < n_events;) {
    for (int i = 0; i < 50; ++i) {
      for (LongLane& lane : all) lane.push_step(queue, t += 1000);
    }
    take(queue.take());
  }
}

}  // namespace streams
