#include "engine/decode/recycling.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/decode/control/step_control.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tokens = std::vector<TokenId>;

Tokens of(const SuccessorTable& table, TokenId before, TokenId token) {
  const auto found = table.of(before, token);
  return {found.begin(), found.end()};
}

Job job_of(OptionValues options, int max_tokens = 60) {
  Job job;
  job.decoder = "recycling";
  job.options = std::move(options);
  job.limits.max_tokens = max_tokens;
  return job;
}

TEST(SuccessorTable, keeps_the_last_k_successors_of_a_token) {
  SuccessorTable table(10, 3, 0);
  EXPECT_THAT(of(table, -1, 4), IsEmpty());
  table.set(-1, 4, Tokens{7, 8, 9, 1});
  EXPECT_THAT(of(table, -1, 4), ElementsAre(7, 8, 9));
  EXPECT_THAT(of(table, 5, 4), ElementsAre(7, 8, 9));
  table.set(2, 4, Tokens{6, -1, 5});
  EXPECT_THAT(of(table, -1, 4), ElementsAre(6));
  EXPECT_THAT(of(table, -1, 3), IsEmpty());
  EXPECT_EQ(table.n_tokens(), 1);
}

TEST(SuccessorTable, what_followed_in_a_text_comes_first) {
  SuccessorTable table(10, 3, 64);
  table.observe(-1, 4, 7);
  table.observe(2, 4, 8);
  EXPECT_THAT(of(table, -1, 4), ElementsAre(8, 7));
  EXPECT_THAT(of(table, 2, 4), ElementsAre(8));
  EXPECT_EQ(table.of_pair(2, 4).sure, Sureness::Seen);
  table.set(2, 4, Tokens{1, 2, 3}, sureness_of(0.7));
  EXPECT_EQ(table.of_pair(2, 4).sure, Sureness::High);
  table.observe(2, 4, 2);
  EXPECT_THAT(of(table, 2, 4), ElementsAre(2, 1, 3));
  table.observe(2, 4, 9);
  EXPECT_THAT(of(table, 2, 4), ElementsAre(9, 2, 1)) << "of more than k the last is dropped";
  EXPECT_EQ(table.of_token(4).sure, Sureness::Seen);
  EXPECT_EQ(table.n_tokens(), 1);
}

TEST(SuccessorTable, a_pairs_successors_come_before_the_tokens) {
  SuccessorTable table(10, 2, 64);
  table.set(1, 4, Tokens{7, 8});
  table.set(2, 4, Tokens{5, 6});
  EXPECT_THAT(of(table, 1, 4), ElementsAre(7, 8));
  EXPECT_THAT(of(table, 2, 4), ElementsAre(5, 6));
  EXPECT_THAT(of(table, 3, 4), ElementsAre(5, 6)) << "an unknown pair: the token's last list";
  EXPECT_THAT(of(table, -1, 4), ElementsAre(5, 6));
}

TEST(SuccessorTable, a_pair_without_room_replaces_another) {
  SuccessorTable table(10, 2, 1);
  table.set(1, 4, Tokens{7});
  table.set(2, 4, Tokens{5});
  EXPECT_THAT(of(table, 2, 4), ElementsAre(5));
  table.set(2, 3, Tokens{9});
  EXPECT_THAT(of(table, 1, 4), ElementsAre(5)) << "only the token's list is left";
}

TEST(SuccessorTable, runs_share_a_table_of_the_same_size) {
  KeptSuccessors kept;
  const auto first = kept.table(10, 3, 8);
  EXPECT_EQ(kept.table(10, 3, 8), first);
  const auto other = kept.table(10, 4, 8);
  EXPECT_NE(other, first);
  EXPECT_EQ(other->k(), 4);
  EXPECT_EQ(first->k(), 3) << "a run that holds it goes on";
}

TEST(RecyclingTree, has_the_rows_asked_for_and_ranks_below_k) {
  for (const int n_rows : {1, 2, 4, 8, 16, 60}) {
    for (const int k : {1, 2, 8}) {
      const RankTree tree = recycling_tree(n_rows, k);
      EXPECT_LE(tree.n_nodes(), n_rows - 1);
      if (k == 8) {
        EXPECT_EQ(tree.n_nodes(), n_rows - 1);
      }
      for (const int rank : tree.rank) EXPECT_LT(rank, k);
    }
  }
}

TEST(SuccessorTree, shares_rows_with_guesses_of_another_source) {
  SuccessorTable table(10, 2, 0);
  table.set(-1, 1, Tokens{2, 3});
  table.set(-1, 2, Tokens{4, 5});
  TokenTree tree;
  tree.add(1, -1, RowTag{});
  for (const TokenId token : {2, 5, 9})  // a continuation found elsewhere
    tree.add(token, tree.n_rows() - 1, RowTag{RowTag::Kind::Guess, 0, 0});
  const RankTree ranks = rank_tree_of({{0}, {1}, {0, 0}, {0, 1}}, "of the test");
  add_successors(tree,
                 {.ranks = ranks, .table = table, .before = -1, .max_depth = 9, .end_ids = {}});
  EXPECT_THAT(tree.token, ElementsAre(1, 2, 5, 9, 3, 4));
  EXPECT_THAT(tree.parent, ElementsAre(-1, 0, 1, 2, 0, 1));
}

TEST(Recycling, without_guesses_it_is_plain_decoding) {
  ToyModel model({.vocab = 9, .context = 2, .seed = 3});
  for (const OptionValues& options :
       {OptionValues{{"rows", "1"}}, OptionValues{{"tree", "none"}}}) {
    const Job job = job_of(options);
    const Outcome found = run(model, {1, 2}, job), ar = run_ar(model, {1, 2}, job);
    EXPECT_EQ(found.tokens, ar.tokens);
    EXPECT_EQ(found.n_steps, ar.n_steps);
    EXPECT_EQ(found.n_proposed, 0);
  }
}

/// The k tokens with the largest logits after a text, computed one by one.
Tokens naive_top(const ToyModel& model, std::span<const TokenId> text, int k) {
  std::vector<float> logits = model.logits_after(text);
  Tokens top;
  for (int i = 0; i < std::min(k, model.vocab_size()); i++) {
    const auto best = std::ranges::max_element(logits);
    top.push_back(static_cast<TokenId>(best - logits.begin()));
    *best = -std::numeric_limits<float>::infinity();
  }
  return top;
}

/// Repeats a run's steps with a table of maps: every guess must be the successor of its parent that its tag
/// names, and every known successor that the tree asks for must be guessed.
class Replay {
 public:
  Replay(const ToyModel& model, const Tokens& prompt, const Job& job)
      : model_(model),
        text_(prompt),
        k_(std::stoi(job.options.at("k"))),
        pairs_(job.options.at("pairs") == "true"),
        all_(job.options.at("learn") == "all"),
        ranks_(recycling_tree(std::stoi(job.options.at("rows")), k_)),
        end_(static_cast<int>(prompt.size()) + job.limits.max_tokens) {}

  void check(const Drafted& drafted) {
    const TokenTree& tree = drafted.tree;
    int n_expected = 1;
    std::vector<int> row_of;
    const int room =
        end_ - static_cast<int>(text_.size()) - 1;  // the last token is the model's own
    for (int node = 0; node < ranks_.n_nodes(); node++) {
      const auto at = static_cast<std::size_t>(node);
      if (ranks_.depth[at] > room) break;
      const int parent = ranks_.parent[at] < 0 ? 0 : row_of[std::size_t(ranks_.parent[at])];
      row_of.push_back(-1);
      if (parent < 0) continue;
      const Tokens successors = known(tree, parent);
      if (ranks_.rank[at] >= std::ssize(successors)) continue;
      const int row = row_of[at] = n_expected++;
      ASSERT_LT(row, tree.n_rows());
      EXPECT_EQ(tree.parent[std::size_t(row)], parent);
      EXPECT_EQ(tree.token[std::size_t(row)], successors[std::size_t(ranks_.rank[at])]);
      EXPECT_EQ(tree.tag[std::size_t(row)].kind, RowTag::Kind::Guess);
      EXPECT_EQ(tree.tag[std::size_t(row)].a, ranks_.depth[at]);
      EXPECT_EQ(tree.tag[std::size_t(row)].b, ranks_.rank[at]);
    }
    EXPECT_EQ(tree.n_rows(), n_expected);
    tree_ = tree;
  }

  void learn(const Verified& verified, const Committed& committed) {
    for (int row = 0; all_ && row < tree_.n_rows(); row++) learn_row(row);
    learn_row(0);
    for (int row = 1; row < tree_.n_rows(); row++)
      if (verified.fate[std::size_t(row)] == RowFate::Accepted) learn_row(row);
    text_.insert(text_.end(), committed.tokens.begin(), committed.tokens.end());
  }

 private:
  TokenId before(const TokenTree& tree, int row) const {
    const int parent = tree.parent[std::size_t(row)];
    if (parent >= 0) return tree.token[std::size_t(parent)];
    return text_.size() > 1 ? text_[text_.size() - 2] : -1;
  }
  Tokens known(const TokenTree& tree, int row) const {
    const TokenId token = tree.token[std::size_t(row)];
    const auto pair = of_pair_.find({before(tree, row), token});
    if (pairs_ && pair != of_pair_.end()) return pair->second;
    const auto found = of_token_.find(token);
    return found == of_token_.end() ? Tokens{} : found->second;
  }
  void learn_row(int row) {
    Tokens text = text_;
    for (const int ancestor : chain_of(tree_, row))
      if (ancestor > 0) text.push_back(tree_.token[std::size_t(ancestor)]);
    const TokenId token = tree_.token[std::size_t(row)];
    of_token_[token] = naive_top(model_, text, k_);
    const TokenId previous = before(tree_, row);
    if (previous >= 0) of_pair_[{previous, token}] = of_token_[token];
  }

  const ToyModel& model_;
  Tokens text_;
  int k_;
  bool pairs_, all_;
  RankTree ranks_;
  int end_;  // length of the text at its token limit
  TokenTree tree_;
  std::map<TokenId, Tokens> of_token_;
  std::map<std::pair<TokenId, TokenId>, Tokens> of_pair_;
};

TEST(Recycling, guesses_are_the_successors_that_the_target_computed) {
  for (const char* pairs : {"false", "true"}) {
    for (const char* learn : {"all", "accepted"}) {
      ToyModel model({.vocab = 13, .context = 3, .seed = 8});
      const Tokens prompt{1, 2, 3, 1};
      const Job job = job_of(
          {{"rows", "12"}, {"k", "4"}, {"pairs", pairs}, {"learn", learn}, {"prompt", "false"}});
      const Outcome outcome = run(model, prompt, job);
      EXPECT_EQ(outcome.tokens, run_ar(model, prompt, job).tokens);
      EXPECT_GT(outcome.n_accepted, 0);
      Replay replay(model, prompt, job);
      Verified verified;
      for (const Event& event : outcome.events) {
        if (const auto* d = std::get_if<Drafted>(&event)) replay.check(*d);
        if (const auto* v = std::get_if<Verified>(&event)) verified = *v;
        if (const auto* c = std::get_if<Committed>(&event)) replay.learn(verified, *c);
      }
    }
  }
}

TEST(Recycling, a_cycle_is_emitted_a_whole_path_at_a_time) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});
  const Job job = job_of({{"rows", "8"}}, 110);
  const Outcome outcome = run(model, {1}, job);
  const int depth = recycling_tree(8, 8).max_depth();
  EXPECT_LT(outcome.n_steps, 6 + 110 / (depth + 1) + 2);
  // A token has successors once it was a row, so each of the six is unknown in at most one step.
  EXPECT_GE(outcome.metrics.at("guess_steps"), outcome.n_steps - 6);
  EXPECT_LT(outcome.metrics.at("guess_steps"), outcome.n_steps);
}

TEST(Recycling, nothing_is_guessed_after_an_end_token) {
  ToyModel model({.vocab = 5, .context = 2, .seed = 6});
  Job job = job_of({{"rows", "30"}, {"k", "5"}}, 40);
  for (const bool ignore : {false, true, false, true}) {
    job.limits.eos_ids = {3};
    job.limits.ignore_eos = ignore;
    int n_after = 0;
    for (const TokenId first : {0, 1, 2, 4})
      for (const Event& event : run(model, {first, 1}, job).events)
        if (const auto* d = std::get_if<Drafted>(&event))
          for (int row = 1; row < d->tree.n_rows(); row++) {
            const int parent = d->tree.parent[std::size_t(row)];
            n_after += parent > 0 && d->tree.token[std::size_t(parent)] == 3;
          }
    EXPECT_EQ(n_after > 0, ignore);
    if (ignore) job.options = {{"k", "5"}};  // then with rows=auto
  }
}

TEST(Recycling, the_prompts_successions_are_guessed) {
  ToyModel model({.vocab = 50, .context = 3, .seed = 5});
  for (const char* rows : {"3", "auto"}) {
    Job job = job_of({{"rows", rows}});
    const auto first_guesses = [&] {
      const Outcome outcome = run(model, {3, 9, 17, 4, 3, 9}, job);
      const auto drafted = std::ranges::find_if(outcome.events, [](const Event& event) {
        return std::holds_alternative<Drafted>(event);
      });
      Tokens tokens = std::get<Drafted>(*drafted).tree.token;
      tokens.resize(std::min(tokens.size(), std::size_t{3}));
      return tokens;
    };
    EXPECT_THAT(first_guesses(), ElementsAre(9, 17, 4));
    job.options["prompt"] = "false";
    EXPECT_THAT(first_guesses(), ElementsAre(9));
  }
}

StepControl known_costs(double ms_of_a_further_row) {
  return StepControl(CostModel([=](int rows) { return 10 + ms_of_a_further_row * (rows - 1); }));
}

TEST(Recycling, auto_guesses_as_many_tokens_as_are_worth_their_time) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});  // falls into a cycle
  Job job = job_of({}, 200);
  StepControl free = known_costs(0), cheap = known_costs(0.5), dear = known_costs(20);
  std::vector<int> n_steps;
  for (StepControl* control : {&free, &cheap, &dear}) {
    job.control = control;
    const Outcome outcome = run(model, {1}, job);
    EXPECT_EQ(outcome.tokens, run_ar(model, {1}, job).tokens);
    n_steps.push_back(outcome.n_steps);
  }
  EXPECT_LT(n_steps[0], 35);
  EXPECT_LT(n_steps[1], 45);
  EXPECT_GE(n_steps[2], 180) << "plain steps, except some that learn the times";
}

TEST(Recycling, the_likeliest_successors_come_first) {
  SuccessorTable table(10, 3, 64);
  table.set(1, 2, Tokens{3, 4}, Sureness::Highest);
  table.set(7, 2, Tokens{5, 3}, Sureness::Middle);  // replaces the token's list
  table.set(2, 3, Tokens{6}, Sureness::Highest);
  SuccessorKnowledge known;
  const Tokens ends{5};
  const auto tree = likely_successors(
      known, table, {.before = 1, .last = 2, .max_tokens = 9, .max_depth = 2, .end_ids = ends});
  using List = SuccessorKnowledge::List;
  const double third =
      known.right(SuccessorKnowledge::category_of(List::OfPair, Sureness::Highest, 0, 0));
  ASSERT_EQ(tree.n_nodes(), 4);
  EXPECT_EQ(tree.node(0).token, 3);
  EXPECT_DOUBLE_EQ(tree.node(0).right, third);
  EXPECT_EQ(tree.node(1).token, 6) << "the successor of the pair (2, 3)";
  EXPECT_EQ(tree.node(1).parent, 0);
  EXPECT_DOUBLE_EQ(tree.node(1).right, third * known.right(SuccessorKnowledge::category_of(
                                                   List::OfPair, Sureness::Highest, 0, 1)));
  EXPECT_EQ(tree.node(2).token + tree.node(3).token, 4 + 5);
  for (int i = 1; i < 4; i++) EXPECT_LE(tree.node(i).right, tree.node(i - 1).right);
}

TEST(Recycling, a_kept_table_serves_the_next_text) {
  ToyModel model({.vocab = 40, .context = 2, .seed = 9});
  KeptSuccessors kept;
  Job job = job_of({{"keep", "true"}}, 50);
  job.successors = &kept;
  const Outcome first = run(model, {1, 2}, job), second = run(model, {1, 2}, job);
  EXPECT_EQ(second.tokens, first.tokens);
  EXPECT_LT(second.n_steps, first.n_steps);
  job.options = {{"keep", "false"}};
  EXPECT_EQ(run(model, {1, 2}, job).n_steps, first.n_steps);
}

// The draws of rejection sampling depend on the guesses.
TEST(Recycling, rejection_sampling_repeats_a_seeds_text) {
  ToyModel model({.vocab = 12, .context = 2, .seed = 9});
  KeptSuccessors kept;
  Job job = job_of({{"keep", "true"}}, 50);
  job.successors = &kept;
  job.sampling = {.temperature = 1, .seed = 4, .mode = Sampling::Mode::Rejection};
  const Outcome first = run(model, {1, 2}, job);
  EXPECT_GT(first.n_accepted, 0);
  EXPECT_EQ(trace_of(run(model, {1, 2}, job).events), trace_of(first.events));
}

TEST(Recycling, refuses_a_tree_with_more_ranks_than_it_keeps) {
  ToyModel model({.vocab = 12, .context = 2, .seed = 9});
  try {
    run(model, {1}, job_of({{"tree", "rows16"}, {"k", "2"}}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_THAT(error.what(), HasSubstr("found rank 2, expected ranks below k=2"));
  }
}

}  // namespace
}  // namespace engine::test
