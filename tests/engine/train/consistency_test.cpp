// The rows of consistency training, their attention spans and goals; gradients of the losses,
// compared with finite differences; augmentation and cleaning.
#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/train/cllm/consistency.h"
#include "tests/engine/train/cpu_learner.h"
#include "tests/engine/train/gradient_check.h"
#include "tests/engine/train/guided_rows.h"
#include "tests/engine/train/small_model.h"

namespace engine {
namespace {

using test::all_losses;
using test::CpuLearner;
using test::Guided;
using test::small_model;
using test::spread;
using test::two_blocks;
using Towards = ConsistencyLoss::Towards;
using By = ConsistencyLoss::By;

TEST(Consistency, points_equal_to_the_text_have_no_targets) {
  const Trajectory t = two_blocks();
  EXPECT_EQ(points_with_targets(t), (std::vector<PointPlace>{{0, 0}, {0, 1}, {0, 2}, {1, 0}}));
  EXPECT_EQ(chain_rows(t, {0, 3}), 0) << "the fixed point itself";
  EXPECT_EQ(chain_rows(t, {1, 1}), 0);
  // From the first wrong position to the last but one, which predicts the last token of the block.
  EXPECT_EQ(chain_rows(t, {0, 0}), 5);
  EXPECT_EQ(chain_rows(t, {0, 1}), 4);
  EXPECT_EQ(chain_rows(t, {0, 2}), 1);
  EXPECT_EQ(chain_rows(t, {1, 0}), 3) << "positions 0 to 2 predict up to the end token";
}

TEST(Consistency, text_rows_predict_the_next_token) {
  const Trajectory t = two_blocks();
  ConsistencyLoss loss;
  loss.prompt_weight = 0.25;
  const GuidedRows rows = rows_of(t, loss);
  EXPECT_EQ(rows.token, (std::vector<TokenId>{1, 40, 41, 10, 11, 12, 13, 14, 15, 16, 17, 18}));
  EXPECT_EQ(rows.target, (std::vector<TokenId>{40, 41, 10, 11, 12, 13, 14, 15, 16, 17, 18, 2}));
  EXPECT_EQ(rows.weight, (std::vector<float>{.25f, .25f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  loss.own_labels = false;
  for (const float weight : rows_of(t, loss).weight) EXPECT_EQ(weight, 0.0f);
  EXPECT_EQ(truth_of(t).tokens, (std::vector<TokenId>{1, 40, 41, 10, 11, 19, 2}));
  EXPECT_EQ(truth_of(t).n_prompt, 3);
}

TEST(Consistency, chain_starts_at_the_first_wrong_token) {
  const Trajectory t = two_blocks();
  const ConsistencyLoss loss;
  GuidedRows rows = rows_of(t, loss);
  EXPECT_EQ(add_chains(rows, t, {{0, 1}, {1, 0}}, loss, 1000), 2);
  ASSERT_EQ(rows.n_rows(), 12 + 4 + 3);
  // Block 0, point 1 = {10, 8, 8, 13, 8, 15}: wrong from position 1 on, which is position 3 + 1 of the text.
  const std::vector<TokenId> inputs = {8, 8, 13, 8}, targets = {12, 13, 14, 15};
  for (int i = 0; i < 4; i++) {
    const auto row = static_cast<std::size_t>(12 + i);
    EXPECT_EQ(rows.token[row], inputs[static_cast<std::size_t>(i)]);
    EXPECT_EQ(rows.target[row], targets[static_cast<std::size_t>(i)]);
    EXPECT_EQ(rows.pos[row], 4 + i);
    EXPECT_EQ(rows.view[row].prefix_end, 4) << "prompt and the one token that is right";
    EXPECT_EQ(rows.view[row].own_begin, 12);
    EXPECT_EQ(rows.goal[row].kind, RowGoal::Kind::Forward);
    EXPECT_EQ(rows.goal[row].teacher, 4 + i) << "the text's row at the same place";
    EXPECT_EQ(rows.target[static_cast<std::size_t>(rows.goal[row].teacher)], rows.target[row]);
    EXPECT_EQ(rows.weight[row], 1.0f);
    EXPECT_EQ(rows.part[row], LossPart::Consistency);
  }
  // Block 1, point 0: wrong from its first position; no token after the end token is predicted.
  EXPECT_EQ(rows.view[16].prefix_end, 9);
  EXPECT_EQ(rows.view[16].own_begin, 16);
  EXPECT_EQ(rows.target[18], 2);
}

TEST(Consistency, a_row_attends_to_each_earlier_position_once) {
  const Trajectory t = two_blocks();
  for (const Towards towards : {Towards::FixedPoint, Towards::NextPoint}) {
    ConsistencyLoss loss;
    loss.towards = towards;
    GuidedRows rows = rows_of(t, loss);
    add_chains(rows, t, points_with_targets(t), loss, 1000);
    for (int row = 0; row < rows.n_rows(); row++) {
      const RowView view = rows.view[static_cast<std::size_t>(row)];
      int seen = 0;
      std::set<int> places;
      for (int other = 0; other <= row; other++) {
        if (other >= view.prefix_end && other < view.own_begin) continue;
        seen++;
        places.insert(rows.pos[static_cast<std::size_t>(other)]);
      }
      EXPECT_EQ(seen, rows.pos[static_cast<std::size_t>(row)] + 1) << row;
      EXPECT_EQ(static_cast<int>(places.size()), seen) << "no position twice, row " << row;
    }
  }
}

TEST(Consistency, local_loss_targets_the_next_point_or_the_text) {
  const Trajectory t = two_blocks();
  ConsistencyLoss loss;
  loss.towards = Towards::NextPoint;
  GuidedRows rows = rows_of(t, loss);
  EXPECT_EQ(add_chains(rows, t, {{0, 0}}, loss, 1000), 1);
  // First the chain of point 1, without a loss: 4 rows from position 1 on; then that of point 0.
  ASSERT_EQ(rows.n_rows(), 12 + 4 + 5);
  for (std::size_t row = 12; row < 16; row++) EXPECT_EQ(rows.weight[row], 0.0f);
  EXPECT_EQ(rows.goal[16].teacher, 3) << "position 0 of point 1 is right: the text's row";
  for (int i = 1; i < 5; i++)
    EXPECT_EQ(rows.goal[static_cast<std::size_t>(16 + i)].teacher, 12 + i - 1);
  // The last point before the fixed point is taught by the text alone.
  GuidedRows last = rows_of(t, loss);
  add_chains(last, t, {{0, 2}}, loss, 1000);
  ASSERT_EQ(last.n_rows(), 13);
  EXPECT_EQ(last.goal[12].teacher, 7);
  // The chain of a point that is both trained and a teacher exists once.
  GuidedRows both = rows_of(t, loss);
  add_chains(both, t, {{0, 0}, {0, 1}}, loss, 1000);
  EXPECT_EQ(both.n_rows(), 12 + 4 + 5 + 1);
  EXPECT_EQ(both.weight[12], 1.0f);
}

TEST(Consistency, hard_labels_are_the_fixed_points_tokens) {
  const Trajectory t = two_blocks();
  ConsistencyLoss loss;
  loss.by = By::HardLabels;
  loss.smoothing = 0.125;
  GuidedRows rows = rows_of(t, loss);
  add_chains(rows, t, {{0, 1}}, loss, 1000);
  EXPECT_EQ(rows.goal[12].kind, RowGoal::Kind::Target);
  EXPECT_EQ(rows.goal[12].smoothing, 0.125f);
  EXPECT_EQ(rows.target[12], 12);
}

TEST(Consistency, points_that_do_not_fit_are_skipped) {
  const Trajectory t = two_blocks();
  const ConsistencyLoss loss;
  GuidedRows rows = rows_of(t, loss);
  EXPECT_EQ(add_chains(rows, t, points_with_targets(t), loss, 12 + 5 + 1), 2)
      << "5 rows and 1 row fit";
  EXPECT_EQ(rows.n_rows(), 18);
}

TEST(Consistency, fresh_chains_use_tokens_of_the_text) {
  const Trajectory t = two_blocks();
  std::vector<TokenId> text = t.prompt;
  text.insert(text.end(), t.output.begin(), t.output.end());
  const ConsistencyLoss loss;
  constexpr int kBlock = 6;
  Random rng(5), again(5), other(6);
  GuidedRows rows = rows_of(t, loss), same = rows, others = rows;
  const int n_text = rows.n_rows();
  EXPECT_GT(add_fresh_chains(rows, t, {.n = 200, .block = kBlock}, loss, 10000, rng), 150);
  add_fresh_chains(same, t, {.n = 200, .block = kBlock}, loss, 10000, again);
  add_fresh_chains(others, t, {.n = 200, .block = kBlock}, loss, 10000, other);
  EXPECT_EQ(same.token, rows.token) << "equal draws give equal chains";
  EXPECT_NE(others.token, rows.token);

  std::set<int> first_positions;
  int n_right = 0, n_chain_rows = 0;
  for (int r = n_text; r < rows.n_rows(); r++) {
    const auto row = static_cast<std::size_t>(r);
    const int at = rows.pos[row], base = rows.view[row].own_begin;
    const int first = rows.view[row].prefix_end;
    ASSERT_GE(first, std::ssize(t.prompt));
    EXPECT_EQ(at, first + r - base);
    EXPECT_LE(r - base + 1, kBlock - 1);
    ASSERT_LT(at + 1, std::ssize(text)) << "no token after the text is predicted";
    EXPECT_EQ(rows.target[row], text[static_cast<std::size_t>(at + 1)]);
    EXPECT_EQ(rows.goal[row].kind, RowGoal::Kind::Forward);
    EXPECT_EQ(rows.goal[row].teacher, at);
    EXPECT_EQ(rows.weight[row], 1.0f);
    EXPECT_EQ(rows.part[row], LossPart::Consistency);
    const bool right = rows.token[row] == text[static_cast<std::size_t>(at)];
    if (r == base) {
      EXPECT_FALSE(right) << "a chain starts at its first wrong token";
      first_positions.insert(first);
    } else {
      n_right += right;
      n_chain_rows++;
    }
    // A wrong guess must be a token of the text before its block, because fill=prompt draws guesses
    // there.
    if (!right) {
      const auto seen = std::find(text.begin(), text.begin() + at, rows.token[row]);
      EXPECT_NE(seen, text.begin() + at);
    }
  }
  EXPECT_EQ(first_positions.size(), t.output.size() - 1)
      << "chains start at every position but the last";
  EXPECT_GT(n_right, n_chain_rows / 8);
  EXPECT_LT(n_right, n_chain_rows / 2);

  GuidedRows full = rows_of(t, loss);
  EXPECT_EQ(add_fresh_chains(full, t, {.n = 200, .block = kBlock}, loss, n_text, rng), 0)
      << "no room";
  EXPECT_EQ(full.n_rows(), n_text);
}

TEST(Consistency, fresh_chains_get_the_requested_iterations) {
  const Trajectory t = two_blocks();
  ConsistencyLoss loss;
  loss.chain_decay = 0.5;
  Random rng(5);
  GuidedRows rows = rows_of(t, loss);
  const auto n_text = static_cast<std::size_t>(rows.n_rows());
  for (const int iterations : {0, 1, 2}) {
    EXPECT_EQ(has_chains_to_refine(rows), iterations > 1);
    const FreshChains wanted{.n = 20, .block = 6, .iterations = iterations};
    ASSERT_GT(add_fresh_chains(rows, t, wanted, loss, 1000, rng), 10);
  }
  const auto own_begin = [&](std::size_t r) {
    return static_cast<std::size_t>(rows.view[r].own_begin);
  };
  for (std::size_t r = 0; r < rows.token.size(); r++) {
    if (r < n_text) {
      EXPECT_EQ(rows.iterations[r], 0) << "rows of the text are not guesses";
    } else {
      EXPECT_EQ(rows.iterations[r], rows.iterations[own_begin(r)])
          << "one number for the whole chain";
      EXPECT_EQ(rows.weight[r], std::ldexp(1.0f, -static_cast<int>(r - own_begin(r))));
    }
  }
  // A model that is correct at even positions and predicts 50 elsewhere.
  std::vector<TokenId> picks;
  for (std::size_t r = 0; r < rows.token.size(); r++)
    picks.push_back((rows.pos[r] + 1) % 2 ? 50 : rows.target[r]);
  const GuidedRows before = rows;
  refine_chains(rows, picks, loss);
  bool right = true;
  int n_wrong = 0;
  for (std::size_t r = n_text; r < rows.token.size(); r++) {
    if (before.iterations[r] == 0) {
      EXPECT_EQ(rows.token[r], before.token[r]);
      EXPECT_EQ(rows.weight[r], before.weight[r]);
      continue;
    }
    EXPECT_EQ(rows.iterations[r], before.iterations[r] - 1);
    const TokenId in_text = rows.token[static_cast<std::size_t>(rows.pos[r])];
    const bool begins = own_begin(r) == r;
    EXPECT_EQ(rows.token[r], begins ? in_text : rows.pos[r] % 2 ? 50 : in_text);
    if (begins) n_wrong = 0;
    right = (begins || right) && rows.token[r] == in_text;
    EXPECT_EQ(rows.weight[r], right ? 0.0f : std::ldexp(1.0f, -n_wrong++))
        << "leading right tokens have no loss";
  }
  EXPECT_TRUE(has_chains_to_refine(rows)) << "chains of two iterations have one left";
  refine_chains(rows, picks, loss);
  EXPECT_FALSE(has_chains_to_refine(rows));
  const GuidedRows after = rows;
  refine_chains(rows, picks, loss);
  EXPECT_EQ(rows.token, after.token);
  for (std::size_t r = 0; r < rows.token.size(); r++) {
    EXPECT_EQ(rows.target[r], before.target[r]);
    EXPECT_EQ(rows.goal[r].teacher, before.goal[r].teacher);
  }
}

TEST(Augment, changes_only_wrong_positions_after_the_first) {
  int n_all = 0;
  for (std::uint64_t seed = 0; seed < 50; seed++) {
    const Trajectory t = two_blocks();
    for (const BlockPoints& original : t.blocks) {
      BlockPoints points = original;
      Random rng(seed);
      const int n_changed = augment(points, rng);
      int n_found = 0;
      const auto& fixed_point = original.back();
      for (std::size_t p = 0; p < points.size(); p++) {
        EXPECT_EQ(n_correct_prefix(points[p], fixed_point),
                  n_correct_prefix(original[p], fixed_point));
        int n_wrong = 0, n_here = 0;
        for (std::size_t i = 0; i < points[p].size(); i++) {
          n_wrong += original[p][i] != fixed_point[i];
          if (points[p][i] == original[p][i]) continue;
          n_here++;
          EXPECT_EQ(points[p][i], fixed_point[i]);
        }
        EXPECT_LE(n_here, n_wrong / 2);
        if (p + 2 >= points.size()) {
          EXPECT_EQ(n_here, 0);
        }
        n_found += n_here;
      }
      EXPECT_EQ(n_found, n_changed);
      n_all += n_changed;
    }
  }
  EXPECT_GT(n_all, 50);
}

TEST(Cleaning, finds_repeated_tokens_before_the_end_token) {
  const std::vector<TokenId> eos = {2};
  std::vector<TokenId> tokens = {5, 6, 6, 6, 7};
  EXPECT_TRUE(repeats_a_token(tokens, 3, eos));
  EXPECT_FALSE(repeats_a_token(tokens, 4, eos));
  tokens = {5, 2, 6, 6, 6};
  EXPECT_FALSE(repeats_a_token(tokens, 3, eos));
  EXPECT_FALSE(repeats_a_token({}, 3, eos));
}

TEST(Cleaning, finds_repeated_sentences_but_not_short_lines) {
  EXPECT_TRUE(repeats_a_sentence("She buys two. She buys two. She buys two.", 3));
  EXPECT_FALSE(repeats_a_sentence("She buys two. She buys two. He buys two.", 3));
  EXPECT_TRUE(repeats_a_sentence("x = x + 1\nx = x + 1\nx = x + 1\n", 3));
  EXPECT_FALSE(repeats_a_sentence("ok\nok\nok\nok\n", 3)) << "fewer than three words";
  EXPECT_FALSE(repeats_a_sentence("", 1));
}

TEST(ConsistencyGradient, is_the_derivative_at_a_fixed_teacher) {
  for (const ConsistencyLoss& loss : all_losses()) {
    CpuLearner learner(small_model());
    const Guided guided(loss);
    const TrainRows rows = guided.train_rows();
    // The teacher keeps the initial weights while the learner's are varied.
    CpuLearner initial(small_model());
    const kernels::TrainWeights teacher = initial.weights();
    std::vector<float> gradient, ignored;
    learner.loss_and_gradient(rows, gradient, &teacher);
    test::expect_gradient(
        learner.parameters, gradient,
        [&] { return learner.loss_and_gradient(rows, ignored, &teacher); }, "parameter", 97, 2e-3,
        0x1p-8f);
  }
}

TEST(ConsistencyGradient, does_not_flow_through_its_own_teacher) {
  for (const ConsistencyLoss& loss : all_losses()) {
    CpuLearner learner(small_model());
    const Guided guided(loss);
    const TrainRows rows = guided.train_rows();
    std::vector<float> own, held;
    const double sum = learner.loss_and_gradient(rows, own);
    CpuLearner initial(small_model());
    const kernels::TrainWeights teacher = initial.weights();
    EXPECT_DOUBLE_EQ(learner.loss_and_gradient(rows, held, &teacher), sum);
    EXPECT_EQ(own, held);
  }
}

TEST(ConsistencyGradient, is_zero_for_rows_that_only_teach) {
  // These rows have no weights: they only supply distributions to learn from.
  ConsistencyLoss loss;
  loss.own_labels = false;
  CpuLearner learner(small_model());
  Guided guided(loss);
  for (std::size_t i = 0; i < guided.rows.weight.size(); i++) guided.rows.weight[i] = 0;
  std::vector<float> gradient;
  EXPECT_EQ(learner.loss_and_gradient(guided.train_rows(), gradient), 0);
  EXPECT_EQ(gradient, std::vector<float>(gradient.size(), 0.0f));
}

TEST(ConsistencyGradient, is_zero_before_the_first_wrong_token) {
  // Adds the chain of a point from the beginning of its block. Before the first wrong token its
  // predictions are those of the text.
  CpuLearner learner(small_model());
  const ConsistencyLoss loss;
  Guided guided(loss);
  const Trajectory t = two_blocks();
  GuidedRows whole = rows_of(t, loss);
  const auto& point = t.blocks[0][2];  // wrong at position 4
  for (int k = 0; k < 5; k++)
    whole.add(point[static_cast<std::size_t>(k)], t.output[static_cast<std::size_t>(k + 1)], 3 + k,
              {3, 12}, {}, 0, LossPart::Consistency);
  const int n = whole.n_rows();
  while (whole.n_rows() % 32) whole.add(0, 0, 0, {}, {}, 0, LossPart::Replay);
  const std::vector<Segment> segments = {{0, n}};
  const auto logits = learner.logits_of(
      {whole.token, whole.target, whole.weight, whole.pos, segments, whole.view, {}});
  const auto vocab = static_cast<std::size_t>(learner.config.vocab_size);
  // Not bit for bit: the same key is in another column, so the softmax's sum over sixteen lanes of
  // columns has another order. Training does not need equal bits, since it leaves out such rows.
  double apart = 0;
  for (std::size_t i = 0; i < vocab; i++) {
    for (std::size_t k = 0; k < 4; k++)
      EXPECT_NEAR(logits[(12 + k) * vocab + i], logits[(3 + k) * vocab + i], 2e-5) << k;
    apart += std::abs(logits[(12 + 4) * vocab + i] - logits[(3 + 4) * vocab + i]);
  }
  EXPECT_GT(apart, 1) << "from the wrong token on they differ";
}

TEST(ConsistencyGradient, bf16_has_the_direction_of_f32) {
  for (const ConsistencyLoss& loss : all_losses()) {
    CpuLearner reference(small_model());
    const Guided guided(loss);
    std::vector<float> expected, gradient;
    reference.loss_and_gradient(guided.train_rows(), expected);
    for (const Compute compute : {Compute::Bf16Amx, Compute::Bf16OneDnn}) {
      if (fastest_compute() != compute) continue;
      CpuLearner learner(small_model(), compute);
      learner.loss_and_gradient(guided.train_rows(), gradient);
      double ab = 0, aa = 0, bb = 0;
      for (std::size_t i = 0; i < expected.size(); i++) {
        ab += static_cast<double>(gradient[i]) * expected[i];
        aa += static_cast<double>(gradient[i]) * gradient[i];
        bb += static_cast<double>(expected[i]) * expected[i];
      }
      // bf16 keeps 8 bits; a gradient is a sum of many such products.
      EXPECT_GT(ab / std::sqrt(aa * bb), 0.995);
    }
  }
}

}  // namespace
}  // namespace engine
