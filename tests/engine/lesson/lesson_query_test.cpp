// Queries on a recording written by hand, whose answers are known.
#include "engine/lesson/lesson_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"

namespace engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Nanoseconds kMs = 1'000'000;
using Kind = RowTag::Kind;

// Emits the events of one step. The first row is the last committed token.
struct Step {
  TokenTree tree;
  std::vector<RowFate> fate;
  std::vector<float> q, p, keep, uniform;
  std::vector<TokenId> committed;
  std::optional<BlockRefined> block = {};
  Nanoseconds forward = kMs;

  void add(TokenId token, int parent, RowTag tag, RowFate result) {
    tree.token.push_back(token);
    tree.parent.push_back(parent);
    tree.tag.push_back(tag);
    fate.push_back(result);
  }
  void emit(Timeline& timeline, RunId run, StepId step) const {
    timeline.apply(StepBegun{.run = run, .step = step, .n_rows = tree.n_rows()});
    timeline.apply(Drafted{.run = run, .step = step, .tree = tree, .q = q});
    if (block) {
      BlockRefined refined = *block;
      refined.run = run, refined.step = step;
      timeline.apply(refined);
    }
    Verified verified{.run = run, .step = step, .fate = fate};
    verified.picked.assign(fate.size(), 0);
    verified.p = p, verified.keep = keep, verified.uniform = uniform;
    for (const RowFate f : fate) {
      verified.n_proposed +=
          f == RowFate::Accepted || f == RowFate::Rejected || f == RowFate::Unused;
      verified.n_accepted += f == RowFate::Accepted;
      verified.n_rejected += f == RowFate::Rejected;
      verified.n_unused += f == RowFate::Unused;
    }
    timeline.apply(verified);
    const auto n_before = static_cast<int>(timeline.run(run)->tokens.size());
    Committed done{.run = run, .step = step, .first_pos = 1 + n_before, .tokens = committed};
    done.status.assign(committed.size(), TokenStatus::Accepted);
    done.origin.assign(committed.size(), {});
    timeline.apply(done);
    timeline.apply(StepEnded{
        .run = run, .step = step, .propose = kMs / 2, .forward = forward, .verify = kMs / 4});
  }
};

void start(Timeline& timeline, RunId run, const char* decoder) {
  timeline.apply(RunStarted{.run = run,
                            .model = 1,
                            .decoder = decoder,
                            .options = {{"gamma", "3"}},
                            .prompt = "hi",
                            .prompt_tokens = {1}});
}

// Run 1: plain, tokens 2 3 4 5. Run 2: a chain, then a tree, then a block. Run 3 ends early with two unverified tokens.
class Queries : public ::testing::Test {
 protected:
  Queries() {
    ModelLoaded model{.model = 1, .name = "m", .weight_bytes = 105'400'000, .vocab_size = 10};
    for (int i = 0; i < 10; ++i) model.pieces.push_back("t" + std::to_string(i));
    timeline.apply(model);
    start(timeline, 1, "ar");
    for (StepId i = 0; i < 4; ++i) {
      Step step;
      step.add(i + 1, -1, {}, RowFate::Context);
      step.committed = {i + 2};
      step.emit(timeline, 1, i);
    }
    start(timeline, 2, "speculative");
    chain().emit(timeline, 2, 0);
    tree().emit(timeline, 2, 1);
    for (int i = 0; i < 3; ++i) block(i).emit(timeline, 2, 2 + i);
    start(timeline, 3, "fastcot");
    Step step;
    step.add(1, -1, {}, RowFate::Context);
    step.committed = {2, 3};
    step.emit(timeline, 3, 0);
    timeline.apply(RunFinished{
        .run = 3, .stop_reason = "bound", .n_tokens = 2, .n_steps = 1, .approximate = {4, 9}});
    EXPECT_EQ(timeline.n_inconsistent(), 0) << timeline.inconsistencies()[0];
  }

  static Step chain() {
    Step step;
    step.add(1, -1, {}, RowFate::Context);
    step.add(2, 0, {Kind::Draft, 1, 0}, RowFate::Accepted);
    step.add(3, 1, {Kind::Draft, 2, 0}, RowFate::Rejected);
    step.add(8, 2, {Kind::Draft, 3, 0}, RowFate::Unused);
    step.q = {0, 0.5F, 0.8F, 0.1F};
    step.p = {-1, 0.7F, 0.2F, -1};
    step.keep = {-1, 1, 0.25F, -1};
    step.uniform = {-1, 0.9F, 0.5F, -1};
    step.committed = {2, 6};
    step.forward = 3 * kMs;
    return step;
  }
  // Two n-grams: (3, 4) with one token accepted, and (5).
  static Step tree() {
    Step step;
    step.add(6, -1, {}, RowFate::Context);
    step.add(3, 0, {Kind::Guess, 0, 0}, RowFate::Accepted);
    step.add(4, 1, {Kind::Guess, 0, 1}, RowFate::Rejected);
    step.add(5, 0, {Kind::Guess, 1, 0}, RowFate::Rejected);
    step.add(7, 0, {Kind::Window, 0, 0}, RowFate::Window);
    step.committed = {3, 2};
    step.forward = 3 * kMs;
    return step;
  }
  // States 7 1 2 3 / 4 9 2 8 / 4 5 2 6 / 4 5 2 6 of a block: its second state has one stationary token.
  static Step block(int i) {
    static const std::vector<TokenId> kStates[] = {{4, 9, 2, 8}, {4, 5, 2, 6}, {4, 5, 2, 6}};
    Step step;
    step.add(2, -1, {}, RowFate::Context);
    step.add(9, 0, {Kind::Block, 0, 0}, RowFate::Rejected);
    step.committed = {4};
    step.block = BlockRefined{.block = 0,
                              .iteration = i,
                              .first_pos = 5,
                              .tokens = kStates[i],
                              .n_final = i + 1,
                              .converged = i == 2};
    step.forward = 3 * kMs;
    return step;
  }

  LessonAnswer ask(LessonQuery query) const { return answer_of(query, timeline); }
  std::string refusal(const LessonQuery& query) const {
    try {
      answer_of(query, timeline);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      return error.what();
    }
    return "";
  }

  Timeline timeline;
};

TEST_F(Queries, counts_of_a_run) {
  EXPECT_EQ(ask({.name = "steps", .run = 1}).text, "4");
  EXPECT_EQ(ask({.name = "tokens", .run = 2}).text, "7");
  EXPECT_EQ(ask({.name = "tokens_per_step", .run = 2}).text, "1.4");
  EXPECT_EQ(ask({.name = "mean_rows", .run = 2}).text, "3");
  EXPECT_EQ(ask({.name = "step_ms", .run = 1}).text, "1.8 ms");
  EXPECT_EQ(ask({.name = "forward_cost", .run = 2, .than = 1}).number, 3);
  EXPECT_EQ(ask({.name = "longest_part", .run = 1}).text, "the forward pass of the model");
  EXPECT_EQ(ask({.name = "weights_mb", .run = 1}).text, "105 MB");
  EXPECT_EQ(ask({.name = "option", .run = 2, .option = "gamma"}).text, "3");
  EXPECT_EQ(ask({.name = "prompt", .run = 2}).text, "\"hi\"");
  EXPECT_EQ(ask({.name = "answer_text", .run = 1}).text, "\"t2t3t4t5\"");
}

TEST_F(Queries, proposals_of_a_chain) {
  EXPECT_EQ(ask({.name = "proposed", .run = 2, .step = 0}).number, 3);
  EXPECT_EQ(ask({.name = "accepted", .run = 2, .step = 0}).number, 1);
  EXPECT_EQ(ask({.name = "committed", .run = 2, .step = 0}).number, 2);
  EXPECT_EQ(ask({.name = "rows", .run = 2, .step = 0}).number, 4);
  EXPECT_EQ(ask({.name = "proposed_text", .run = 2, .step = 0}).text, "\"t2t3t8\"");
  EXPECT_EQ(ask({.name = "committed_text", .run = 2, .step = 0}).text, "\"t2t6\"");
  EXPECT_EQ(ask({.name = "proposal", .run = 2, .step = 0, .token = 3}).text, "\"t8\"");
  const LessonAnswer rejected = ask({.name = "first_rejected", .run = 2, .step = 0});
  EXPECT_THAT(rejected.options, ElementsAre("\"t2\"", "\"t3\"", "\"t8\""));
  EXPECT_THAT(rejected.right, ElementsAre(1));
}

TEST_F(Queries, probabilities_of_a_proposal) {
  EXPECT_EQ(ask({.name = "target_probability", .run = 2, .step = 0, .token = 2}).text, "20 %");
  EXPECT_EQ(ask({.name = "draft_probability", .run = 2, .step = 0, .token = 2}).text, "80 %");
  EXPECT_EQ(ask({.name = "keep_probability", .run = 2, .step = 0, .token = 2}).text, "25 %");
  EXPECT_EQ(ask({.name = "draw", .run = 2, .step = 0, .token = 2}).text, "50 %");
  EXPECT_EQ(ask({.name = "kept", .run = 2, .step = 0, .token = 1}).text, "yes");
  EXPECT_EQ(ask({.name = "kept", .run = 2, .step = 0, .token = 2}).text, "no");
  EXPECT_THAT(refusal({.name = "draw", .run = 2, .step = 0, .token = 3}),
              HasSubstr("not recorded"));
  EXPECT_THAT(refusal({.name = "draw", .run = 2, .step = 0, .token = 4}), HasSubstr("it has 3"));
}

TEST_F(Queries, paths_and_ngrams_of_a_tree) {
  EXPECT_EQ(ask({.name = "paths", .run = 2, .step = 1}).number, 2);
  const LessonAnswer path = ask({.name = "surviving_path", .run = 2, .step = 1});
  EXPECT_THAT(path.options, ElementsAre("\"t3t4\"", "\"t5\""));
  EXPECT_THAT(path.right, ElementsAre(0));
  EXPECT_EQ(ask({.name = "candidates", .run = 2, .step = 1}).number, 2);
  EXPECT_EQ(ask({.name = "hits", .run = 2, .step = 1}).text, "yes");
  EXPECT_EQ(ask({.name = "hitting_ngram", .run = 2, .step = 1}).text, "\"t3t4\"");
  EXPECT_EQ(ask({.name = "window_rows", .run = 2, .step = 1}).number, 1);
  EXPECT_THAT(refusal({.name = "hits", .run = 2, .step = 0}), HasSubstr("no n-gram"));
}

TEST_F(Queries, states_of_a_block) {
  const LessonAnswer final_ones = ask({.name = "already_final", .run = 2, .step = 2});
  EXPECT_THAT(final_ones.options,
              ElementsAre("\"t9\" at position 2", "\"t2\" at position 3", "\"t8\" at position 4"));
  EXPECT_THAT(final_ones.right, ElementsAre(1));
  EXPECT_EQ(ask({.name = "fast_forward", .run = 2, .step = 3}).number, 3);
  EXPECT_EQ(ask({.name = "iterations", .run = 2, .step = 3}).number, 2);
  EXPECT_THAT(refusal({.name = "already_final", .run = 2, .step = 4}), HasSubstr("fewer than two"));
  EXPECT_THAT(refusal({.name = "iterations", .run = 2, .step = 0}), HasSubstr("refined no block"));
}

TEST_F(Queries, runs_are_compared_by_their_tokens) {
  EXPECT_EQ(ask({.name = "same_text", .run = 1, .than = 1}).text, "yes");
  EXPECT_EQ(ask({.name = "same_text", .run = 2, .than = 1}).text, "no");
  EXPECT_EQ(ask({.name = "unverified", .run = 3, .than = 1}).number, 2);
  EXPECT_EQ(ask({.name = "wrong_unverified", .run = 3, .than = 1}).number, 1);
  const LessonAnswer wrong = ask({.name = "wrong_token", .run = 3, .than = 1});
  EXPECT_THAT(wrong.options, ElementsAre("\"t4\"", "\"t9\""));
  EXPECT_THAT(wrong.right, ElementsAre(1));
  EXPECT_EQ(ask({.name = "right_token", .run = 3, .than = 1}).text, "\"t4\"");
}

TEST_F(Queries, refusals_give_the_reason) {
  EXPECT_THAT(refusal({.name = "steps", .run = 7}), HasSubstr("no run 7"));
  EXPECT_THAT(refusal({.name = "accepted", .run = 1, .step = 99}), HasSubstr("it has 4 steps"));
  EXPECT_THAT(refusal({.name = "accepted", .run = 1, .step = 0}), HasSubstr("proposed no token"));
  EXPECT_THAT(refusal({.name = "target_busy"}), HasSubstr("no run took part"));
  EXPECT_THAT(refusal({.name = "speedup", .run = 2}), HasSubstr("no plain run"));
  EXPECT_THAT(refusal({.name = "wrong_token", .run = 2, .than = 1}), HasSubstr("no unverified"));
  EXPECT_THAT(refusal({.name = "option", .run = 2, .option = "x"}), HasSubstr("no option"));
  EXPECT_THAT(refusal({.name = "nonsense"}), HasSubstr("no query"));
}

// Every query of the table is covered by a test above or answers one of the bundled lessons.
TEST(LessonQueries, every_name_is_unique) {
  std::set<std::string> names;
  for (const LessonQueryInfo& info : lesson_queries()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_NE(std::string(info.does), "") << info.name;
    EXPECT_EQ(lesson_query(info.name), &info);
  }
  EXPECT_EQ(lesson_query("nonsense"), nullptr);
}

TEST(LessonQueries, numbers_in_words) {
  EXPECT_EQ(number_words(3), "3");
  EXPECT_EQ(number_words(2.5, " ms"), "2.5 ms");
  EXPECT_EQ(number_words(0.126), "0.13");
  EXPECT_EQ(number_words(100, " %"), "100 %");
}

}  // namespace
}  // namespace engine
