// A trajectory of two blocks and its rows with all chains, for tests of consistency training.
#pragma once

#include <vector>

#include "engine/train/cllm/consistency.h"

namespace engine::test {

/// A prompt of 3 tokens, an answer of 10 with an end token (2), two blocks of 6; the second continues
/// after the end token.
inline Trajectory two_blocks() {
  Trajectory t;
  t.prompt = {1, 40, 41};
  t.output = {10, 11, 12, 13, 14, 15, 16, 17, 18, 2};
  t.ended = true;
  t.truth = {10, 11, 19, 2};
  t.blocks = {{{7, 7, 12, 7, 7, 7},      // first wrong 0
               {10, 8, 8, 13, 8, 15},    // first wrong 1
               {10, 11, 12, 13, 9, 15},  // first wrong 4
               {10, 11, 12, 13, 14, 15}},
              {{7, 7, 7, 7, 33, 34},     // first wrong 0
               {16, 17, 18, 2, 50, 51},  // correct up to the end of the text
               {16, 17, 18, 2, 52, 53}}};
  return t;
}

/// The rows of two_blocks() with all its chains, padded to 32.
struct Guided {
  explicit Guided(const ConsistencyLoss& loss) : rows(rows_of(two_blocks(), loss)) {
    const Trajectory t = two_blocks();
    add_chains(rows, t, points_with_targets(t), loss, 64);
    segments = {{0, rows.n_rows()}};
    while (rows.n_rows() % 32) rows.add(0, 0, 0, {}, {}, 0, LossPart::Replay);
    for (float& w : rows.weight) w *= 0.05f;
  }
  TrainRows train_rows() const {
    return {rows.token, rows.target, rows.weight, rows.pos, segments, rows.view, rows.goal};
  }
  GuidedRows rows;
  std::vector<Segment> segments;
};

/// Every kind of consistency loss.
inline std::vector<ConsistencyLoss> all_losses() {
  using Towards = ConsistencyLoss::Towards;
  using By = ConsistencyLoss::By;
  std::vector<ConsistencyLoss> losses;
  for (const Towards towards : {Towards::FixedPoint, Towards::NextPoint})
    for (const By by : {By::ForwardKl, By::ReverseKl, By::JensenShannon})
      losses.push_back({.towards = towards, .by = by, .smoothing = 0.1, .prompt_weight = 0.5});
  losses.push_back({.by = By::HardLabels, .smoothing = 0.1, .prompt_weight = 0.5});
  return losses;
}

}  // namespace engine::test
