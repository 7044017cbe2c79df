#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "engine/decode/guess/textbook_jacobi.h"
#include "engine/decode/jacobi.h"
#include "engine/event/timeline/trajectory.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

Job jacobi(int block, const std::string& refill = "block") {
  Job job;
  job.decoder = "jacobi";
  job.options = {{"block", std::to_string(block)}, {"refill", refill}};
  return job;
}

std::vector<BlockRefined> blocks_of(const Outcome& outcome) {
  std::vector<BlockRefined> blocks;
  for (const Event& event : outcome.events) {
    if (const auto* refined = std::get_if<BlockRefined>(&event)) blocks.push_back(*refined);
  }
  return blocks;
}

// T16.
TEST(Jacobi, a_block_of_one_is_plain_decoding) {
  ToyModel model({.vocab = 8, .seed = 2});
  for (const char* refill : {"block", "slide"}) {
    const Outcome found = run(model, {1, 2}, jacobi(1, refill));
    const Outcome ar = run_ar(model, {1, 2}, jacobi(1));
    EXPECT_EQ(found.tokens, ar.tokens);
    EXPECT_EQ(found.n_steps, ar.n_steps);
    EXPECT_EQ(found.metrics.at("rows"), ar.metrics.at("rows"));
  }
}

// T5.
TEST(Jacobi, needs_at_most_one_step_per_token) {
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = dice(2, 12), .context = dice(1, 3), .seed = seed});
    Job job = jacobi(dice(2, 10));
    if (seed % 2) job.sampling.temperature = 1;
    const Outcome outcome = run(model, dice.text(dice(1, 8), model.vocab_size()), job);
    std::map<int, int> n_iterations;
    std::map<int, std::size_t> size;
    for (const BlockRefined& b : blocks_of(outcome)) {
      n_iterations[b.block] = std::max(n_iterations[b.block], b.iteration);
      size[b.block] = b.tokens.size();
    }
    for (const auto& [block, n] : n_iterations) EXPECT_LE(n, static_cast<int>(size[block]));
  }
}

// T5.
TEST(Jacobi, textbook_form_needs_at_most_n_plus_1_forwards) {
  bool bound_attained = false;
  for (std::uint64_t seed = 0; seed < 300; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = dice(2, 9), .context = dice(1, 3), .seed = seed});
    const auto prompt = dice.text(dice(1, 6), model.vocab_size());
    const int n = dice(1, 12);
    Job job;
    job.limits.max_tokens = n;
    job.sampling.temperature = seed % 3 ? 1.0f : 0.0f;
    job.sampling.seed = seed;
    Sequence sequence(prompt, model.make_cache());
    prefill(model, sequence);
    const auto trajectory =
        textbook_jacobi(model, sequence, dice.text(n, model.vocab_size()), job.sampling);
    EXPECT_EQ(trajectory.points.back(), run_ar(model, prompt, job).tokens);
    EXPECT_LE(trajectory.n_forwards, n + 1);
    EXPECT_EQ(trajectory.n_forwards, static_cast<int>(trajectory.points.size()));
    bound_attained |= n > 3 && trajectory.n_forwards == n + 1;
    EXPECT_EQ(sequence.cache().length(), static_cast<int>(prompt.size()) - 1);
  }
  EXPECT_TRUE(bound_attained);
}

TEST(Jacobi, a_block_has_the_trajectory_of_the_textbook_form) {
  // The KV cache saves work but no iterations: the reported states equal those of full
  // recomputation.
  int n_compared = 0;
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 5, .context = 2, .seed = seed});
    const auto prompt = dice.text(dice(1, 6), model.vocab_size());
    Job job = jacobi(6);
    job.sampling.temperature = seed % 2 ? 1.0f : 0.0f;
    const Outcome outcome = run(model, prompt, job);
    std::map<int, std::vector<BlockRefined>> by_block;
    for (const BlockRefined& b : blocks_of(outcome)) by_block[b.block].push_back(b);
    std::vector<TokenId> text = prompt;
    text.insert(text.end(), outcome.tokens.begin(), outcome.tokens.end());
    for (const auto& [block, states] : by_block) {
      if (!states.back().converged) continue;
      const auto first = static_cast<std::size_t>(states[0].first_pos) + 1;
      Sequence sequence({text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first)},
                        model.make_cache());
      prefill(model, sequence);
      const auto& tokens = states[0].tokens;
      const auto trajectory = textbook_jacobi(
          model, sequence, std::vector(tokens.begin() + 1, tokens.end()), job.sampling);
      // A block's first token is known. Its last state is reported once more as converged.
      ASSERT_EQ(states.size(), trajectory.points.size() + 1);
      for (std::size_t t = 0; t < trajectory.points.size(); t++) {
        const auto& shown = states[t].tokens;
        EXPECT_EQ(std::vector(shown.begin() + 1, shown.end()), trajectory.points[t]);
      }
      n_compared++;
    }
  }
  EXPECT_GT(n_compared, 100);
}

Job textbook(int block) {
  Job job = jacobi(block);
  job.options["form"] = "textbook";
  return job;
}

TEST(Jacobi, textbook_states_are_the_iterates_up_to_the_fixed_point) {
  bool bound_attained = false;
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = dice(2, 9), .context = dice(1, 3), .seed = seed});
    const auto prompt = dice.text(dice(1, 6), model.vocab_size());
    Job job = textbook(dice(1, 9));
    job.limits.max_tokens = dice(1, 40);
    job.sampling.temperature = seed % 2 ? 1.0f : 0.0f;
    job.sampling.seed = seed;
    const Outcome outcome = run(model, prompt, job);
    EXPECT_EQ(outcome.tokens, run_ar(model, prompt, job).tokens) << described(job);
    std::map<int, std::vector<BlockRefined>> by_block;
    for (const BlockRefined& b : blocks_of(outcome)) by_block[b.block].push_back(b);
    std::vector<TokenId> text = prompt;
    text.insert(text.end(), outcome.tokens.begin(), outcome.tokens.end());
    int n_steps = 0;
    for (const auto& [block, states] : by_block) {
      Sequence sequence({text.begin(), text.begin() + states[0].first_pos}, model.make_cache());
      prefill(model, sequence);
      const auto trajectory = textbook_jacobi(model, sequence, states[0].tokens, job.sampling);
      // T5: at most n + 1 forwards; the last one changes nothing.
      const int n = static_cast<int>(states[0].tokens.size());
      EXPECT_LE(trajectory.n_forwards, n + 1);
      bound_attained |= n > 3 && trajectory.n_forwards == n + 1;
      ASSERT_EQ(static_cast<int>(states.size()), trajectory.n_forwards + 1);
      for (std::size_t t = 0; t < trajectory.points.size(); t++) {
        EXPECT_EQ(states[t].tokens, trajectory.points[t]);
        EXPECT_EQ(states[t].converged, false);
      }
      EXPECT_EQ(states.back().tokens, trajectory.points.back());
      EXPECT_TRUE(states.back().converged);
      n_steps += trajectory.n_forwards;
    }
    EXPECT_EQ(outcome.n_steps, n_steps);
  }
  EXPECT_TRUE(bound_attained);
}

TEST(Jacobi, a_textbook_step_computes_the_whole_block) {
  ToyModel model({.vocab = 8, .context = 3, .seed = 3});
  Job job = textbook(5);
  job.limits.max_tokens = 13;
  const Outcome outcome = run(model, {1, 2, 3}, job);
  ASSERT_EQ(outcome.tokens.size(), 13u);
  std::vector<int> rows, kv_len;
  for (const Event& event : outcome.events) {
    if (const auto* begun = std::get_if<StepBegun>(&event)) {
      rows.push_back(begun->n_rows);
      kv_len.push_back(begun->kv_len);
    }
    if (const auto* verified = std::get_if<Verified>(&event)) {
      EXPECT_EQ(verified->fate[0], RowFate::Context);
    }
  }
  int before = 0;
  for (std::size_t i = 0; i < rows.size(); i++) {
    EXPECT_EQ(rows[i], before == 10 ? 3 : 5);  // blocks of 5, 5 and the rest
    EXPECT_EQ(kv_len[i], 2 + before);
    const int n = outcome.emitted_per_step[i];
    EXPECT_TRUE(n == 0 || n == rows[i]) << n;
    before += n;
  }
  EXPECT_GT(std::ranges::count(outcome.emitted_per_step, 0), 0);
}

TEST(Jacobi, textbook_form_has_no_sliding_window) {
  ToyModel model({.vocab = 4});
  Job job = textbook(4);
  job.options["refill"] = "slide";
  try {
    run(model, {1}, job);
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_NE(std::string(error.what()).find("refill is slide, but form=textbook"),
              std::string::npos);
  }
}

TEST(Jacobi, both_forms_count_blocks_alike) {
  // A textbook block has one more unknown token than a block whose first token is known.
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    Job job = textbook(4);
    job.limits.max_tokens = 32;
    const Outcome outcome = run(model, {1, 2, 3}, job);
    EXPECT_EQ(outcome.metrics.at("blocks"), 8);
    EXPECT_EQ(outcome.metrics.at("blocks_converged"), 8);
    EXPECT_EQ(outcome.metrics.at("iterations"), outcome.n_steps);
    EXPECT_GT(outcome.metrics.at("fast_forward_mean"), 0);
    EXPECT_LE(outcome.metrics.at("fast_forward_mean"), 4);
  }
}

// The authors' counting program: recomputes every row of a block whose first token is known, in
// every iteration, until nothing changes.
std::vector<std::vector<TokenId>> profiled(ToyModel& model,
                                           std::vector<TokenId> text,
                                           const std::vector<TokenId>& guess) {
  text.push_back(guess.front());
  if (guess.size() == 1) return {guess};
  Sequence prefix(text, model.make_cache());
  prefill(model, prefix);
  auto points = textbook_jacobi(model, prefix, std::span(guess).subspan(1), {}).points;
  for (auto& point : points) point.insert(point.begin(), guess.front());
  return points;
}

TEST(Jacobi, counters_equal_those_of_full_recomputation) {
  int n_at_eos = 0, n_stationary = 0;
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    const std::vector<TokenId> prompt{1, 2, 3};
    Job job = jacobi(5);
    job.limits = {.max_tokens = 30, .eos_ids = {4}};
    const Outcome outcome = run(model, prompt, job);
    std::vector<TokenId> text = prompt;
    text.insert(text.end(), outcome.tokens.begin(), outcome.tokens.end());
    double fast_forward = 0, live = 0;
    int n_blocks = 0, stationary = 0;
    for (const BlockRefined& block : blocks_of(outcome)) {
      if (block.iteration > 0) continue;  // only first guesses are needed
      const std::vector<TokenId> before(text.begin(), text.begin() + block.first_pos);
      const auto points = profiled(model, before, block.tokens);
      const auto left = static_cast<std::ptrdiff_t>(text.size()) - block.first_pos;
      const bool at_eos = outcome.stop == StopReason::Eos &&
                          left <= static_cast<std::ptrdiff_t>(block.tokens.size());
      const std::vector<TokenId> eos = at_eos ? job.limits.eos_ids : std::vector<TokenId>{};
      const TrajectoryCounts counts = count_trajectory(points, eos);
      if (counts.n_iterations == 0) continue;
      EXPECT_EQ(std::accumulate(counts.fast_forward.begin(), counts.fast_forward.end(), 0),
                static_cast<int>(counts.final_run.size()))
          << "each position is fast-forwarded once";
      n_blocks++;
      n_at_eos += at_eos;
      fast_forward += counts.fast_forward_mean;
      stationary += counts.n_stationary;
    }
    if (outcome.metrics.at("blocks_converged") != n_blocks) continue;  // a first guess was right
    EXPECT_NEAR(outcome.metrics.at("fast_forward_mean"), fast_forward / n_blocks, 1e-12) << seed;
    EXPECT_EQ(outcome.metrics.at("stationary_tokens"), stationary) << seed;
    EXPECT_NEAR(outcome.metrics.at("stationary_per_block"),
                static_cast<double>(stationary) / n_blocks, 1e-12);
    // The live count uses only tokens that agreement has proved final, so it is at most the count
    // made when the block has converged.
    live = outcome.metrics.at("fast_forward_live");
    EXPECT_LE(live, outcome.metrics.at("fast_forward_mean") + 1e-12) << seed;
    EXPECT_GE(live, 1 - 1e-12);
    n_stationary += stationary;
  }
  EXPECT_GT(n_at_eos, 5);
  EXPECT_GE(n_stationary, 5);
}

TEST(Jacobi, reported_final_tokens_never_change) {
  for (const char* refill : {"block", "slide", "textbook"}) {
    for (std::uint64_t seed = 0; seed < 30; seed++) {
      Dice dice(seed);
      ToyModel model({.vocab = 6, .context = 2, .seed = seed});
      const auto prompt = dice.text(3, 6);
      const bool whole = std::string(refill) == "textbook";
      const Outcome outcome = run(model, prompt, whole ? textbook(7) : jacobi(7, refill));
      std::vector<TokenId> text = prompt;
      text.insert(text.end(), outcome.tokens.begin(), outcome.tokens.end());
      for (const BlockRefined& b : blocks_of(outcome)) {
        EXPECT_GE(b.n_final, whole ? std::min(b.iteration, static_cast<int>(b.tokens.size())) : 1);
        for (int i = 0; i < b.n_final; i++) {
          const auto pos = static_cast<std::size_t>(b.first_pos + i);
          ASSERT_LT(pos, text.size());
          EXPECT_EQ(b.tokens[static_cast<std::size_t>(i)], text[pos]) << refill;
        }
      }
    }
  }
}

TEST(Jacobi, the_sliding_window_stays_full) {
  ToyModel model({.vocab = 8, .context = 3, .seed = 3});
  Job job = jacobi(5, "slide");
  job.limits.max_tokens = 30;
  const Outcome outcome = run(model, {1, 2, 3}, job);
  for (const Event& event : outcome.events) {
    const auto* begun = std::get_if<StepBegun>(&event);
    if (!begun) continue;
    const int left = 3 + 30 - (begun->kv_len + 1);
    EXPECT_EQ(begun->n_rows, std::min(5, left));
  }
}

TEST(Jacobi, fill_tokens_follow_the_option) {
  ToyModel model({.vocab = 8, .context = 3, .seed = 3});
  const std::vector<TokenId> prompt{5, 3, 6};
  Job job = jacobi(6);
  job.options["fill"] = "pad";
  EXPECT_EQ(blocks_of(run(model, prompt, job))[0].tokens, (std::vector<TokenId>{6, 0, 0, 0, 0, 0}));
  job.options["fill"] = "repeat";
  EXPECT_EQ(blocks_of(run(model, prompt, job))[0].tokens, (std::vector<TokenId>{6, 6, 6, 6, 6, 6}));
  job.options["fill"] = "prompt";
  const BlockRefined first = blocks_of(run(model, prompt, job))[0];
  for (const TokenId token : first.tokens) {
    EXPECT_TRUE(std::ranges::find(prompt, token) != prompt.end());
  }
}

TEST(Trajectory, counts_the_papers_worked_example) {
  // Worked out by hand from the definitions of Kou et al. 2024, section 4.3.
  const std::vector<std::vector<TokenId>> points{
      {7, 1, 1, 1, 1, 1}, {7, 2, 9, 5, 8, 9}, {7, 2, 3, 5, 9, 6}, {7, 2, 3, 4, 5, 6}};
  const TrajectoryCounts counts = count_trajectory(points);
  EXPECT_EQ(counts.fast_forward, (std::vector<int>{2, 1, 3}));
  EXPECT_DOUBLE_EQ(counts.fast_forward_mean, 2.0);
  EXPECT_EQ(counts.final_run, (std::vector<int>{3, 3, 2, 1, 1, 2}));
  EXPECT_EQ(counts.baseline, (std::vector<int>{3, 3, 2, 1, 1, 1}));
  EXPECT_EQ(counts.stationary, (std::vector<bool>{false, false, false, false, false, true}));
  EXPECT_EQ(counts.n_stationary, 1);
}

TEST(Trajectory, a_repeated_fixed_point_counts_once) {
  std::vector<std::vector<TokenId>> points{{7, 1, 1}, {7, 2, 9}, {7, 2, 3}};
  const auto fast_forward = count_trajectory(points).fast_forward;
  points.push_back(points.back());
  EXPECT_EQ(count_trajectory(points).fast_forward, fast_forward);
}

TEST(Trajectory, counting_stops_after_the_end_token) {
  const std::vector<std::vector<TokenId>> points{{7, 1, 1, 1}, {7, 2, 9, 4}, {7, 2, 3, 4}};
  const std::vector<TokenId> eos{2};
  const TrajectoryCounts counts = count_trajectory(points, eos);
  EXPECT_EQ(counts.final_run.size(), 2u);
  // The iteration that fixes the end token is the last: later tokens are not part of the output.
  EXPECT_EQ(counts.fast_forward, (std::vector<int>{2}));
  EXPECT_DOUBLE_EQ(counts.fast_forward_mean, 2);
  EXPECT_EQ(counts.n_stationary, 0);
}

TEST(Trajectory, an_early_correct_end_token_is_stationary) {
  const std::vector<std::vector<TokenId>> points{
      {7, 1, 1, 1, 1}, {7, 3, 9, 2, 8}, {7, 3, 4, 2, 6}, {7, 3, 4, 2, 5}};
  const std::vector<TokenId> eos{2};
  const TrajectoryCounts counts = count_trajectory(points, eos);
  EXPECT_EQ(counts.n_iterations, 2);
  EXPECT_EQ(counts.fast_forward, (std::vector<int>{2, 2}));
  EXPECT_EQ(counts.final_run, (std::vector<int>{2, 2, 1, 2}));
  EXPECT_EQ(counts.baseline, (std::vector<int>{2, 2, 1, 1}));
  EXPECT_EQ(counts.stationary, (std::vector<bool>{false, false, false, true}));
}

TEST(Trajectory, a_first_guess_may_be_correct) {
  const std::vector<std::vector<TokenId>> points{{7, 2, 3}, {7, 2, 3}};
  const TrajectoryCounts counts = count_trajectory(points);
  EXPECT_EQ(counts.n_iterations, 1);
  EXPECT_EQ(counts.fast_forward, (std::vector<int>{3}));
}

TEST(Jacobi, a_chosen_block_changes_no_token) {
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    ToyModel model({.vocab = 5, .context = 2, .seed = seed});
    const double each = 0.5 * static_cast<double>(seed % 5);
    StepControl control(CostModel([each](int rows) { return 10 + each * rows; }));
    Job job = jacobi(1, seed % 3 ? "block" : "slide");
    job.options["block"] = "auto";
    job.control = &control;
    job.limits.max_tokens = 100;
    job.sampling.temperature = seed % 2 ? 0.9f : 0;
    EXPECT_EQ(run(model, {1, 2}, job).tokens, run_ar(model, {1, 2}, job).tokens) << seed;
  }
}

TEST(Jacobi, a_chosen_block_is_one_where_no_block_pays) {
  ToyModel model({.vocab = 500, .context = 20, .seed = 5});
  for (const char* refill : {"block", "slide"}) {
    StepControl control(CostModel([](int rows) { return 10 + 2.0 * rows; }));
    Job job = jacobi(1, refill);
    job.options["block"] = "auto";
    job.control = &control;
    job.limits.max_tokens = 300;
    const Outcome outcome = run(model, {1, 2}, job);
    EXPECT_GE(outcome.counts.at("plain_steps"), 270) << refill;
    EXPECT_LE(outcome.counts.at("rows"), 360) << refill;
  }
}

}  // namespace
}  // namespace engine::test
