// FastCoT's answer probe on models that report attention weights.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "engine/decode/fastcot.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

class Probe : public testing::Test {
 protected:
  Probe() : device_(kernels::open_cpu(2)) {
    model_ = tiny_transformer(*device_, kernels::DType::F32, 11, tiny_config(), {});
  }
  std::vector<TokenId> prompt(int n = 20) const {
    Dice dice(5);
    return dice.text(n, model_->vocab_size());
  }
  StepOutput forward(const TokenTree& tree, int attention_of, Sequence& at) {
    BatchItem item{.cache = &at.cache(), .tree = &tree, .prefix = at.cached_tokens()};
    item.attention_of = attention_of;
    std::vector<StepOutput> out = model_->forward(std::span(&item, 1), Wants{});
    at.cache().commit({});
    return std::move(out.front());
  }

  std::unique_ptr<kernels::Device> device_;
  std::unique_ptr<Model> model_;
};

TEST_F(Probe, probes_attend_to_their_chain_and_change_no_choice) {
  Sequence at(prompt(), model_->make_cache());
  prefill(*model_, at);
  TokenTree tree;
  tree.add(at.last(), -1, RowTag{});
  for (const int parent : {0, 0, 1, 3, 2}) tree.add(tree.n_rows() * 3, parent, RowTag{});
  const StepOutput asked = forward(tree, 4, at), not_asked = forward(tree, -1, at);
  ASSERT_EQ(asked.attention.size(), 6u);
  EXPECT_TRUE(not_asked.attention.empty());
  double sum = 0;
  for (const int row : {0, 1, 3, 4}) {
    EXPECT_GT(asked.attention[static_cast<std::size_t>(row)], 0) << row;
    sum += asked.attention[static_cast<std::size_t>(row)];
  }
  EXPECT_EQ(asked.attention[2], 0);  // a sibling's branch
  EXPECT_EQ(asked.attention[5], 0);
  EXPECT_LT(sum, 1);  // the rest belongs to the prefix
  for (std::size_t r = 0; r < 6; r++) EXPECT_EQ(asked.picked[r].logp, not_asked.picked[r].logp);
}

TEST_F(Probe, a_row_without_a_prefix_attends_only_to_its_chain) {
  Sequence at({7}, model_->make_cache());
  TokenTree tree;
  tree.add(7, -1, RowTag{});
  tree.add(8, 0, RowTag{});
  tree.add(9, 1, RowTag{});
  const StepOutput out = forward(tree, 2, at);
  EXPECT_NEAR(out.attention[0] + out.attention[1] + out.attention[2], 1, 1e-5);
}

TEST_F(Probe, each_sequence_of_a_batch_has_its_own_probe) {
  Sequence one(prompt(20), model_->make_cache()), two(prompt(9), model_->make_cache());
  prefill(*model_, one);
  prefill(*model_, two);
  TokenTree tree;
  tree.add(one.last(), -1, RowTag{});
  tree.add(3, 0, RowTag{});
  TokenTree other;
  other.add(two.last(), -1, RowTag{});
  other.add(4, 0, RowTag{});
  other.add(5, 1, RowTag{});
  const StepOutput alone = forward(tree, 1, one), alone_two = forward(other, 2, two);
  std::vector<BatchItem> items{
      {.cache = &one.cache(), .tree = &tree, .prefix = one.cached_tokens()},
      {.cache = &two.cache(), .tree = &other, .prefix = two.cached_tokens()}};
  items[0].attention_of = 1;
  items[1].attention_of = 2;
  const auto both = model_->forward(items, Wants{});
  EXPECT_EQ(both[0].attention, alone.attention);
  EXPECT_EQ(both[1].attention, alone_two.attention);
}

Job probing(double threshold, std::vector<TokenId> keywords) {
  Job job;
  job.decoder = "fastcot";
  job.options = {
      {"window", "6"}, {"stop", "probe"}, {"probe_threshold", std::to_string(threshold)}};
  job.probe = {{3, 4, 5}, std::move(keywords)};
  return job;
}

TEST_F(Probe, probe_rows_change_neither_output_nor_cache) {
  const Job job = probing(1000, {1});
  const Outcome found =
      run(*model_, prompt(), job);  // run() checks the cache's length at every step
  EXPECT_EQ(found.tokens, run_ar(*model_, prompt(), job).tokens);
  EXPECT_EQ(found.stop, StopReason::Length);
  Job without = job;
  without.options["stop"] = "none";
  const Outcome plain = run(*model_, prompt(), without);
  EXPECT_EQ(found.emitted_per_step, plain.emitted_per_step);
  EXPECT_GT(found.metrics.at("rows"), plain.metrics.at("rows"));
}

TEST_F(Probe, the_trigger_is_never_accepted_as_output) {
  // The trigger starts with the model's prediction after the window: accepting it would emit the
  // trigger as output and commit its rows.
  Job job = probing(1000, {1});
  const Outcome ar = run_ar(*model_, prompt(), job);
  for (std::size_t i = 1; i + 3 < ar.tokens.size(); i += 3) {
    job.options["window"] = std::to_string(i);
    job.probe.trigger = {ar.tokens[i], ar.tokens[i + 1]};
    EXPECT_EQ(run(*model_, prompt(), job).tokens, ar.tokens);
  }
}

TEST_F(Probe, a_repeatedly_attended_answer_ends_the_run) {
  std::vector<TokenId> every_token;
  for (TokenId t = 0; t < model_->vocab_size(); t++) every_token.push_back(t);
  // Some row of the window is above the mean in every step, so the run ends at the first
  // opportunity.
  const Outcome found = run(*model_, prompt(), probing(1, every_token));
  EXPECT_EQ(found.stop, StopReason::Probe);
  EXPECT_EQ(found.n_steps, 2);
  EXPECT_FALSE(found.approximate.empty());
  // Attention shares are reported only for the window's rows.
  for (const Event& event : found.events) {
    const auto* v = std::get_if<Verified>(&event);
    if (v == nullptr) continue;
    ASSERT_EQ(v->probe.size(), 1u + 6 + 3);
    EXPECT_NEAR(std::accumulate(v->probe.begin() + 1, v->probe.begin() + 7, 0.0), 6, 1e-4)
        << "the mean is 1";
    EXPECT_GT(*std::max_element(v->probe.begin() + 1, v->probe.begin() + 7), 1);
    for (const std::size_t row : {0u, 7u, 8u, 9u}) EXPECT_EQ(v->probe[row], -1);
  }
  const Outcome never = run(*model_, prompt(), probing(1, {}));
  EXPECT_EQ(never.stop, StopReason::Length);
}

}  // namespace
}  // namespace engine::test
