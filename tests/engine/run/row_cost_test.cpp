// row_cost_ms() repeats the forwards of a run of any decoder: the same rows after the same tokens.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/row_cost.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine {
namespace {

TEST(RowCost, every_forward_is_repeated_with_its_rows) {
  int n_emitting_nothing = 0;
  for (std::uint64_t seed = 1; seed <= 300; seed++) {
    test::Dice dice(seed);
    test::ToyModel model({.vocab = 12}), draft(test::draft_of({.vocab = 12}));
    const std::vector<TokenId> prompt = dice.text(dice(1, 20), 12);
    const test::Job job = test::random_job(dice, &draft);
    const test::Outcome outcome = test::run(model, prompt, job);
    EventList reported;
    StepRecorder steps(&reported);
    for (const Event& event : outcome.events) steps.push(event);
    EXPECT_EQ(reported.events.size(), outcome.events.size()) << "every event is passed on";
    for (const int emitted : outcome.emitted_per_step) n_emitting_nothing += emitted == 0;
    const auto of_steps = [&] {  // after the prompt's forwards
      return std::vector<int>(model.n_rows.end() - outcome.n_steps, model.n_rows.end());
    };
    const std::vector<int> rows = of_steps();
    model.n_rows.clear();
    RunRequest request;
    request.prompt_tokens = prompt;
    request.sampling = job.sampling;
    row_cost_ms(model, request, steps.of(1));
    ASSERT_GE(model.n_rows.size(), rows.size()) << test::described(job);
    EXPECT_EQ(of_steps(), rows) << test::described(job);
  }
  EXPECT_GT(n_emitting_nothing, 0) << "no step without an emitted token occurred";
}

TEST(RowCost, recorded_draft_rows_count_and_a_stop_ends_it) {
  StepRecorder steps(nullptr);
  TokenTree tree;
  tree.add(3, -1, {});
  for (int step = 0; step < 2; step++) {
    steps.push(Drafted{.run = 4, .tree = tree, .forwards = {{.begun = 10, .ended = 25}, {30, 32}}});
    steps.push(Committed{.run = 4, .tokens = {static_cast<TokenId>(5 + step)}});
    tree.token[0] = 5;
  }
  EXPECT_EQ(steps.of(4).drafting, 2 * 17);
  EXPECT_TRUE(steps.of(5).steps.empty());
  test::ToyModel model({});
  RunRequest request;
  request.prompt_tokens = {1, 3};
  int n_asked = 0;
  row_cost_ms(model, request, steps.of(4), [&] { return ++n_asked == 2; });
  EXPECT_EQ(model.n_forwards, 2) << "prefill and one step";
}

TEST(RowCost, the_chain_of_tokens_is_found_in_a_tree) {
  TokenTree tree;
  tree.add(1, -1, {});
  for (const auto& [token, parent] :
       std::vector<std::pair<TokenId, int>>{{2, 0}, {2, 0}, {7, 1}, {3, 2}, {4, 4}})
    tree.add(token, parent, {});
  EXPECT_EQ(rows_along(tree, std::vector<TokenId>{1, 2, 3, 4}), (std::vector<int>{0, 2, 4, 5}));
  EXPECT_EQ(rows_along(tree, std::vector<TokenId>{1, 2}), (std::vector<int>{0, 1}));
  EXPECT_TRUE(rows_along(tree, {}).empty());
  EXPECT_THROW(rows_along(tree, std::vector<TokenId>{2, 3}), ContractError);
  EXPECT_THROW(rows_along(tree, std::vector<TokenId>{1, 2, 4}), ContractError);
}

}  // namespace
}  // namespace engine
