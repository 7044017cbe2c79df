#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "engine/decode/guess/earlier_texts.h"
#include "engine/decode/lookahead.h"
#include "engine/decode/registry.h"
#include "tests/support/decode/chosen_sizes.h"
#include "tests/support/decode/interrupted_toy.h"
#include "tests/support/decode/run_decoder.h"
#include "tests/support/models/toy_model.h"

namespace engine::test {
namespace {

Job lookahead(int window, int ngram_size, int n_guesses, OptionValues more = {}) {
  Job job;
  job.decoder = "lookahead";
  job.options = std::move(more);
  job.options["window"] = std::to_string(window);
  job.options["ngram_size"] = std::to_string(ngram_size);
  job.options["n_guesses"] = std::to_string(n_guesses);
  return job;
}

Job paper(int window, int ngram_size, int n_guesses) {
  return lookahead(window, ngram_size, n_guesses, {{"preset", "paper"}});
}

template <class E>
std::vector<E> all(const std::vector<Event>& events) {
  std::vector<E> found;
  for (const Event& event : events) {
    if (const auto* e = std::get_if<E>(&event)) found.push_back(*e);
  }
  return found;
}

std::vector<TokenId> joined(std::vector<TokenId> text, const std::vector<TokenId>& more) {
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

int n_added(const Outcome& outcome, StepId born) {
  int n = 0;
  for (const PoolChanged& changed : all<PoolChanged>(outcome.events))
    n += static_cast<int>(std::ranges::count(changed.added, born, &PoolNgram::born));
  return n;
}

int count(const TokenTree& tree, RowTag::Kind kind) {
  return static_cast<int>(
      std::ranges::count_if(tree.tag, [&](const RowTag& tag) { return tag.kind == kind; }));
}

int depth_of(const TokenTree& tree, int row) {
  return static_cast<int>(chain_of(tree, row).size()) - 1;
}

/// A job whose columns and guesses are chosen.
Job chosen(int ngram_size, StepControl& control, OptionValues more = {}) {
  Job job;
  job.decoder = "lookahead";
  job.options = std::move(more);
  job.options["ngram_size"] = std::to_string(ngram_size);
  job.control = &control;
  return job;
}

TEST(Lookahead, chosen_sizes_change_no_token) {
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    StepControl control = free_rows(dice(1, 20));
    Job job = chosen(dice(2, 6), control);
    if (dice(0, 1)) job.options["advance"] = "accepted";
    if (dice(0, 3) == 0) job.options["window"] = "3";
    if (dice(0, 3) == 0) job.options["n_guesses"] = "2";
    if (dice(0, 1)) job.options.erase("ngram_size");
    job.limits.max_tokens = 120;
    job.sampling.temperature = seed % 2 ? 0.9f : 0;
    EXPECT_EQ(run(model, {1, 2}, job).tokens, run_ar(model, {1, 2}, job).tokens) << seed;
  }
}

TEST(Lookahead, a_file_adds_the_n_grams_that_followed_there) {
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 300, .context = 2, .seed = seed});
    const std::vector<TokenId> prompt{1, 2};
    Job job = lookahead(dice(1, 4), dice(2, 5), dice(1, 5));
    job.sampling.temperature = seed % 2 ? 0.9f : 0;
    const Outcome ar = run_ar(model, prompt, job);
    const std::vector<TokenId> text = joined(dice.text(100, 300), ar.tokens);
    job.texts = std::make_shared<EarlierTexts>(std::make_shared<PoolFile>("a.txt", text));
    const Outcome found = run(model, prompt, job);
    EXPECT_EQ(found.tokens, ar.tokens) << seed;
    EXPECT_LT(found.n_steps, ar.n_steps * 3 / 4) << seed;
    for (const PoolChanged& changed : all<PoolChanged>(found.events)) {
      for (const PoolNgram& ngram : changed.added) {
        if (ngram.born != kBornInFile) continue;
        EXPECT_FALSE(std::ranges::search(text, joined({ngram.first}, ngram.rest)).empty())
            << "not a part of the file";
      }
    }
    EXPECT_GT(n_added(found, kBornInFile), 0) << seed;
    EXPECT_GT(found.counts.at("copied_from_file"), 0) << seed;
  }
}

TEST(Lookahead, a_kept_text_gives_its_n_grams_to_the_next_run) {
  std::int64_t n_hits = 0;
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 300, .context = 2, .seed = seed});
    const std::vector<TokenId> prompt{1, 2};
    Job job =
        dice(0, 1) ? lookahead(dice(1, 4), dice(2, 5), dice(1, 5)) : Job{.decoder = "lookahead"};
    job.options["keep"] = "true";
    job.sampling.temperature = seed % 2 ? 0.9f : 0;
    const Outcome alone = run(model, prompt, job);
    auto texts = std::make_shared<EarlierTexts>();
    texts->add(7, joined(prompt, alone.tokens), prompt.size(), 1000);
    job.texts = texts;
    const Outcome again = run(model, prompt, job);
    EXPECT_EQ(again.tokens, alone.tokens) << seed;
    EXPECT_LT(again.n_steps, alone.n_steps) << seed;
    n_hits += again.counts.at("copied_from_earlier");
    EXPECT_GT(n_added(again, kBornInEarlierText), 0) << seed;
    job.options["keep"] = "false";
    EXPECT_EQ(run(model, prompt, job).n_steps, alone.n_steps) << seed;
    // An earlier run with the same seed has used the same random numbers.
    job.options["keep"] = "true";
    job.sampling = {.temperature = 0.9f, .mode = Sampling::Mode::Rejection};
    EXPECT_EQ(n_added(run(model, prompt, job), kBornInEarlierText), 0) << seed;
  }
  EXPECT_GT(n_hits, 20 * 10);
  EXPECT_EQ(parse_options("lookahead", {{"keep", "true"}})->n_kept_tokens(), 65'536);
  EXPECT_EQ(parse_options("lookahead", {})->n_kept_tokens(), 0);
  EXPECT_THROW(parse_options("lookahead", {{"keep", "true"}, {"ranks", "mpi"}}), Error);
}

// During the run another one ends, and its text replaces that of run 6.
TEST(Lookahead, every_guess_is_at_the_place_it_names) {
  using Kind = GuessSource::Kind;
  Dice dice(12);
  int n_of_kind[5] = {}, n_of_newer = 0;
  for (int round = 0; round < 40; round++) {
    const auto prompt = dice.text(30, 12), earlier = dice.text(60, 12), file = dice.text(60, 12),
               newer = dice.text(60, 12);
    auto texts = std::make_shared<EarlierTexts>(std::make_shared<PoolFile>("pool.txt", file));
    texts->add(6, earlier, 20, 1000);
    InterruptedToy model({.vocab = 12, .context = 2, .seed = std::uint64_t(round)}, 7,
                         [&] { texts->add(8, newer, 20, 80); });
    Job job = round % 2 ? Job{.decoder = "lookahead"} : lookahead(3, 4, 6);
    job.options["keep"] = "true";
    job.texts = texts;
    const Outcome found = run(model, prompt, job);
    const std::vector<TokenId> own = joined(prompt, found.tokens);
    int n_accepted[5] = {};
    std::vector<GuessSource> sources;
    for (const Event& event : found.events) {
      if (const auto* drafted = std::get_if<Drafted>(&event)) {
        sources = drafted->sources;
        for (std::size_t row = 0; row < sources.size(); row++) {
          const GuessSource& source = sources[row];
          n_of_kind[static_cast<int>(source.kind)]++;
          if (source.kind == Kind::None) continue;
          ASSERT_EQ(drafted->tree.tag[row].kind, RowTag::Kind::Guess);
          ASSERT_EQ(source.run == 6 || source.run == 8, source.kind == Kind::Earlier);
          const auto& from = source.run == 6             ? earlier
                             : source.run == 8           ? newer
                             : source.kind == Kind::File ? file
                                                         : own;
          auto pos = static_cast<std::size_t>(source.pos);
          for (int at = static_cast<int>(row); at >= 0; at = drafted->tree.parent[std::size_t(at)])
            ASSERT_EQ(from.at(pos--), drafted->tree.token[std::size_t(at)]) << round;
          n_of_newer += source.run == 8;
          if (&from == &own) {
            ASSERT_EQ(source.kind == Kind::Prompt, source.pos < 30);
          }
        }
      } else if (const auto* verified = std::get_if<Verified>(&event)) {
        for (std::size_t row = 0; row < sources.size(); row++)
          n_accepted[static_cast<int>(sources[row].kind)] +=
              verified->fate[row] == RowFate::Accepted;
      }
    }
    EXPECT_EQ(found.counts.at("copied_from_earlier"), n_accepted[static_cast<int>(Kind::Earlier)]);
    EXPECT_EQ(found.counts.at("copied_from_file"), n_accepted[static_cast<int>(Kind::File)]);
  }
  for (const Kind kind : {Kind::None, Kind::Prompt, Kind::Text, Kind::Earlier, Kind::File})
    EXPECT_GT(n_of_kind[static_cast<int>(kind)], 0) << static_cast<int>(kind);
  EXPECT_GT(n_of_newer, 0);
}

// Inactive columns keep their cells and active ones advance; each collected n-gram comes from one
// column.
TEST(Lookahead, every_chosen_window_has_whole_columns) {
  std::set<int> widths;
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Dice dice(seed);
    const int n = dice(2, 5);
    ToyModel model({.vocab = 5, .context = 2, .seed = seed});
    StepControl control = free_rows(dice(1, 24));
    Job job = chosen(n, control, {{"prompt_pool", "false"}});
    job.limits.max_tokens = 200;
    const Outcome outcome = run(model, {1, 2, 3}, job);
    int n_warming = n - 2;  // steps with a window until it is filled
    for (const Drafted& drafted : all<Drafted>(outcome.events)) {
      const TokenTree& tree = drafted.tree;
      const int n_rows = count(tree, RowTag::Kind::Window);
      if (n_rows == 0 || n_warming-- > 0) continue;
      EXPECT_EQ((n_rows + 1) % (n - 1), 0) << n_rows;
      const int width = (n_rows + 1) / (n - 1);
      EXPECT_LE(width, 4);
      widths.insert(width);
      // Level 0 is a chain after the last token; other levels hang below their column.
      for (int row = 1; row <= n_rows; row++) {
        const RowTag& tag = tree.tag[static_cast<std::size_t>(row)];
        EXPECT_LT(tag.b, width);
        EXPECT_EQ(depth_of(tree, row), tag.a + tag.b);
      }
    }
    EXPECT_EQ(outcome.tokens, run_ar(model, {1, 2, 3}, job).tokens);
  }
  EXPECT_GT(widths.size(), 2u) << "several sizes are chosen";
}

TEST(Lookahead, computes_only_the_last_token_where_rows_cost_a_step) {
  ToyModel model({.vocab = 5000, .context = 30, .seed = 7});  // unpredictable
  StepControl steep(CostModel([](int rows) { return 10.0 * rows; }));
  Job job = chosen(3, steep);
  job.limits.max_tokens = 200;
  const Outcome outcome = run(model, {1, 2, 3}, job);
  EXPECT_GE(outcome.counts.at("plain_steps"), 190);
  EXPECT_LE(outcome.counts.at("rows"), 220);
}

TEST(Lookahead, chosen_guesses_follow_a_text_that_repeats_itself) {
  ToyModel model({.vocab = 6, .context = 1, .seed = 2});  // falls into a cycle
  // A given window of 15 columns has more rows than a step whose window is chosen.
  for (const char* window : {"auto", "15"}) {
    StepControl control(CostModel([](int rows) { return 10 + 0.5 * rows; }));
    Job job = chosen(6, control, {{"window", window}});
    job.limits.max_tokens = 150;
    EXPECT_LE(run(model, {1}, job).n_steps, 60) << window;
  }
}

TEST(Lookahead, a_step_with_given_guesses_reports_its_chosen_columns) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 3});
  StepControl control = free_rows(12);
  Job job = chosen(3, control, {{"n_guesses", "4"}});
  job.limits.max_tokens = 60;
  int n_steps = 0;
  for (const Drafted& drafted : all<Drafted>(run(model, {1, 2, 3}, job).events)) {
    const int n_rows = drafted.tree.n_rows();
    EXPECT_EQ(drafted.decision.size, n_rows - 1);
    EXPECT_EQ(drafted.decision.ms, static_cast<float>(control.ms(n_rows)));
    EXPECT_GE(drafted.decision.tokens, 1);
    n_steps++;
  }
  EXPECT_GT(n_steps, 10);
}

TEST(Lookahead, a_published_step_has_w_plus_g_times_n_minus_1_rows) {
  for (std::uint64_t seed = 0; seed < 60; seed++) {
    Dice dice(seed);
    const int window = dice(1, 8), n = dice(2, 6);
    ToyModel model({.vocab = 5, .context = 2, .seed = seed});
    const Outcome outcome = run(model, dice.text(4, 5), paper(window, n, dice(1, 8)));
    int step = 0;
    for (const Drafted& drafted : all<Drafted>(outcome.events)) {
      const int n_guess_rows = count(drafted.tree, RowTag::Kind::Guess);
      EXPECT_EQ(n_guess_rows % (n - 1), 0);
      const int g = n_guess_rows / (n - 1);
      if (step >= n - 2) {
        EXPECT_EQ(drafted.tree.n_rows(), (window + g) * (n - 1));
      } else {
        // Warm-up: the last token, level 0 and `step` further levels with one more cell.
        EXPECT_EQ(g, 0);
        const int level = window + n - 3 - step;
        EXPECT_EQ(drafted.tree.n_rows(), 1 + level + step * (level + 1));
      }
      step++;
    }
  }
}

TEST(Lookahead, window_cells_follow_level_and_column) {
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 6, .context = 2, .seed = seed});
    const Outcome outcome = run(model, dice.text(4, 6),
                                lookahead(dice(1, 8), dice(2, 6), dice(0, 5),
                                          {{"advance", seed % 2 ? "one" : "accepted"}}));
    for (const Drafted& drafted : all<Drafted>(outcome.events)) {
      for (int r = 1; r < drafted.tree.n_rows(); r++) {
        const RowTag tag = drafted.tree.tag[static_cast<std::size_t>(r)];
        const int depth = depth_of(drafted.tree, r);
        if (tag.kind == RowTag::Kind::Window) {
          EXPECT_EQ(depth, tag.a + tag.b);
        } else {
          EXPECT_EQ(depth, tag.b + 1);
        }
      }
    }
  }
}

// T5.
TEST(Lookahead, a_step_emits_at_most_n_tokens) {
  int longest_with = 0, longest_without = 0;
  for (std::uint64_t seed = 0; seed < 40; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 4, .context = 1, .seed = seed});
    const auto prompt = dice.text(6, 4);
    for (const int n_emitted : run(model, prompt, lookahead(4, 4, 4)).emitted_per_step) {
      longest_with = std::max(longest_with, n_emitted);
    }
    const Outcome published = run(model, prompt, paper(4, 4, 4));
    for (std::size_t i = 0; i < published.emitted_per_step.size(); i++) {
      longest_without = std::max(longest_without, published.emitted_per_step[i]);
      // The pool is empty until the first window is full.
      if (i < 3) {
        EXPECT_EQ(published.emitted_per_step[i], 1);
      }
    }
  }
  EXPECT_EQ(longest_with, 4);
  EXPECT_EQ(longest_without, 3);
}

TEST(Lookahead, a_repeated_token_is_emitted_n_at_a_time) {
  ToyModel model({.vocab = 1});
  Job job = lookahead(3, 5, 2);
  job.limits.max_tokens = 100;
  const Outcome outcome = run(model, {0}, job);
  EXPECT_EQ(outcome.n_steps, 4 + 96 / 5 + 1);  // four steps until the sequence holds a 5-gram
  Job published = paper(3, 5, 2);
  published.limits.max_tokens = 100;
  EXPECT_EQ(run(model, {0}, published).n_steps, 4 + 96 / 4);
}

TEST(Lookahead, unpredictable_text_is_emitted_one_token_at_a_time) {
  ToyModel model({.vocab = 500, .context = 64});
  Job job = lookahead(5, 4, 5);
  job.limits.max_tokens = 100;
  EXPECT_GE(run(model, {1, 2, 3}, job).n_steps, 95);
}

// T16.
TEST(Lookahead, without_guesses_it_is_plain_decoding) {
  ToyModel model({.vocab = 6, .context = 2, .seed = 9});
  const Outcome ar = run_ar(model, {1, 2}, lookahead(3, 3, 0));
  const Outcome found = run(model, {1, 2}, lookahead(3, 3, 0));
  EXPECT_EQ(found.tokens, ar.tokens);
  EXPECT_EQ(found.n_steps, ar.n_steps);
  EXPECT_EQ(found.metrics.at("pool_ngrams"), 0);
}

TEST(Lookahead, merged_guesses_need_fewer_rows_for_the_same_output) {
  std::int64_t rows_merged = 0, rows_apart = 0;
  for (std::uint64_t seed = 0; seed < 30; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 4, .context = 2, .seed = seed});
    const auto prompt = dice.text(12, 4);
    const Outcome merged = run(model, prompt, lookahead(3, 4, 6));
    const Outcome apart = run(model, prompt, lookahead(3, 4, 6, {{"merge", "false"}}));
    EXPECT_EQ(merged.emitted_per_step, apart.emitted_per_step);
    rows_merged += static_cast<std::int64_t>(merged.metrics.at("rows"));
    rows_apart += static_cast<std::int64_t>(apart.metrics.at("rows"));
    for (const Drafted& drafted : all<Drafted>(merged.events)) {
      std::set<std::pair<int, TokenId>> seen;
      for (std::size_t r = 1; r < drafted.tree.token.size(); r++) {
        if (drafted.tree.tag[r].kind != RowTag::Kind::Guess) continue;
        EXPECT_TRUE(seen.insert({drafted.tree.parent[r], drafted.tree.token[r]}).second);
      }
    }
  }
  EXPECT_LT(rows_merged, rows_apart);
}

std::vector<TokenId> whole(const PoolNgram& ngram) {
  std::vector<TokenId> tokens{ngram.first};
  tokens.insert(tokens.end(), ngram.rest.begin(), ngram.rest.end());
  return tokens;
}

/// True if a branch of the step's window plus the prediction of its last row equals this n-gram.
bool is_window_branch(const TokenTree& tree,
                      const std::vector<TokenId>& picked,
                      const PoolNgram& ngram) {
  const std::size_t n_rows = ngram.rest.size();
  for (int r = 0; r < tree.n_rows(); r++) {
    if (tree.tag[static_cast<std::size_t>(r)].kind == RowTag::Kind::Guess) continue;
    const std::vector<int> chain = chain_of(tree, r);
    if (chain.size() < n_rows) continue;
    std::vector<TokenId> tail;
    for (std::size_t i = chain.size() - n_rows; i < chain.size(); i++) {
      tail.push_back(tree.token[static_cast<std::size_t>(chain[i])]);
    }
    tail.push_back(picked[static_cast<std::size_t>(r)]);
    if (tail == whole(ngram)) return true;
  }
  return false;
}

TEST(Lookahead, each_window_ngram_is_a_branch_and_its_prediction) {
  // Rebuilds the pool from the reported rows.
  for (std::uint64_t seed = 0; seed < 30; seed++) {
    Dice dice(seed);
    const int n = dice(2, 5);
    ToyModel model({.vocab = 7, .context = 2, .seed = seed});
    const Outcome outcome = run(model, dice.text(5, 7), paper(dice(1, 6), n, 2));
    const auto drafted = all<Drafted>(outcome.events);
    const auto verified = all<Verified>(outcome.events);
    std::size_t n_added = 0;
    for (const PoolChanged& changed : all<PoolChanged>(outcome.events)) {
      const auto step = static_cast<std::size_t>(changed.step);
      const TokenTree& tree = drafted[step].tree;
      for (const PoolNgram& ngram : changed.added) {
        EXPECT_EQ(ngram.born, changed.step);
        EXPECT_TRUE(is_window_branch(tree, verified[step].picked, ngram));
        n_added++;
      }
    }
    EXPECT_GT(n_added, 0u);
  }
}

TEST(Lookahead, the_window_holds_argmax_tokens_even_when_sampling) {
  ToyModel model({.vocab = 7, .context = 2, .seed = 3});
  Job job = lookahead(4, 3, 3);
  job.sampling = {.temperature = 2, .seed = 9};
  const std::vector<TokenId> prompt{1, 2, 3};
  const Outcome outcome = run(model, prompt, job);
  const auto verified = all<Verified>(outcome.events);
  std::vector<TokenId> text = prompt;
  text.insert(text.end(), outcome.tokens.begin(), outcome.tokens.end());
  const auto begun = all<StepBegun>(outcome.events);
  int n_window = 0;
  for (const Drafted& drafted : all<Drafted>(outcome.events)) {
    const auto step = static_cast<std::size_t>(drafted.step);
    for (int r = 1; r < drafted.tree.n_rows(); r++) {
      const auto row = static_cast<std::size_t>(r);
      if (drafted.tree.tag[row].kind != RowTag::Kind::Window) continue;
      std::vector<TokenId> seen(text.begin(), text.begin() + begun[step].kv_len);
      for (const int i : chain_of(drafted.tree, r)) {
        seen.push_back(drafted.tree.token[static_cast<std::size_t>(i)]);
      }
      const auto logits = model.logits_after(seen);
      EXPECT_EQ(verified[step].picked[row], std::ranges::max_element(logits) - logits.begin());
      n_window++;
    }
  }
  EXPECT_GT(n_window, 100);
}

TEST(Lookahead, pool_events_reproduce_the_pool) {
  for (std::uint64_t seed = 0; seed < 20; seed++) {
    Dice dice(seed);
    ToyModel model({.vocab = 5, .context = 2, .seed = seed});
    const int n_guesses = dice(1, 4);
    const Outcome outcome = run(model, dice.text(10, 5), lookahead(4, 3, n_guesses));
    std::map<std::pair<TokenId, std::vector<TokenId>>, PoolNgram> pool;
    std::int64_t n_hits = 0;
    for (const PoolChanged& changed : all<PoolChanged>(outcome.events)) {
      for (const PoolNgram& added : changed.added) pool[{added.first, added.rest}] = added;
      for (const PoolNgram& tried : changed.tried) {
        ASSERT_TRUE(pool.contains({tried.first, tried.rest}));
        PoolNgram& known = pool[{tried.first, tried.rest}];
        EXPECT_EQ(tried.n_tries, known.n_tries + 1);
        n_hits += tried.n_hits - known.n_hits;
        known = tried;
      }
      for (const PoolNgram& gone : changed.evicted) pool.erase({gone.first, gone.rest});
      std::map<TokenId, int> per_key;
      for (const auto& [key, ngram] : pool) per_key[key.first]++;
      for (const auto& [first, n] : per_key) EXPECT_LE(n, n_guesses);
      EXPECT_EQ(changed.n_ngrams, static_cast<int>(pool.size()));
      EXPECT_EQ(changed.n_keys, static_cast<int>(per_key.size()));
    }
    EXPECT_EQ(static_cast<double>(n_hits), outcome.metrics.at("pool_hits"));
    EXPECT_GT(n_hits, 0);
  }
}

TEST(Lookahead, prompt_ngrams_are_used_from_the_first_step) {
  ToyModel model({.vocab = 9, .context = 2, .seed = 1});
  const Outcome outcome = run(model, {1, 2, 3, 4, 1}, lookahead(2, 3, 4));
  const PoolChanged first = all<PoolChanged>(outcome.events)[0];
  ASSERT_GE(first.added.size(), 3u);
  EXPECT_EQ(first.added[0].first, 1);
  EXPECT_EQ(first.added[0].rest, (std::vector<TokenId>{2, 3}));
  EXPECT_EQ(first.added[0].born, -1);
  ASSERT_EQ(first.tried.size(), 1u);  // the prompt ends in 1
  EXPECT_EQ(first.tried[0].rest, (std::vector<TokenId>{2, 3}));
}

/// True if an accepted guess contains the end token and the target agrees with the token after it.
bool ran_over_the_end(const TokenTree& tree, const Verified& verified, TokenId eos) {
  for (std::size_t r = 1; r < tree.token.size(); r++) {
    if (tree.token[r] != eos || verified.fate[r] != RowFate::Accepted) continue;
    for (std::size_t c = r + 1; c < tree.token.size(); c++) {
      const bool agrees = tree.token[c] == verified.picked[r];
      if (tree.parent[c] == static_cast<int>(r) && agrees) return true;
    }
  }
  return false;
}

// T13.
TEST(Lookahead, eos_inside_an_ngram_ends_the_output) {
  // The prompt's n-grams propose 2 3 1 after 1, and 3 is the end token. N-grams of generated text
  // may not continue past it. The prompt's end tokens are too far from its end to occur in them.
  const std::vector<TokenId> prompt{1, 2, 3, 1, 2, 3, 0, 1, 2, 1};
  constexpr TokenId kEnd = 3;
  int n_text_ngrams = 0, n_ran_over = 0;
  for (std::uint64_t seed = 0; seed < 400; seed++) {
    ToyModel model({.vocab = 4, .context = 1, .seed = seed});
    Job job = lookahead(3, 4, 4);
    job.limits.eos_ids = {kEnd};
    const Outcome outcome = run(model, prompt, job);
    ASSERT_EQ(outcome.tokens, run_ar(model, prompt, job).tokens);
    const auto drafted = all<Drafted>(outcome.events);
    const auto verified = all<Verified>(outcome.events);
    n_ran_over += ran_over_the_end(drafted.back().tree, verified.back(), kEnd);
    for (const PoolChanged& changed : all<PoolChanged>(outcome.events)) {
      const auto step = static_cast<std::size_t>(changed.step);
      for (const PoolNgram& ngram : changed.added) {
        if (ngram.born < 0) continue;  // from the prompt
        // The window predicts past the end; all other n-grams are generated text.
        if (is_window_branch(drafted[step].tree, verified[step].picked, ngram)) continue;
        const std::vector<TokenId> tokens = whole(ngram);
        EXPECT_EQ(std::count(tokens.begin(), tokens.end() - 1, kEnd), 0)
            << "seed " << seed << ": " << testing::PrintToString(tokens);
        n_text_ngrams++;
      }
    }
  }
  EXPECT_GT(n_text_ngrams, 100);
  EXPECT_GT(n_ran_over, 10) << "too few guesses contain an end token for a meaningful test";
}

TEST(NgramPool, keeps_the_most_recently_seen_of_each_key) {
  NgramPool pool(2, 2);
  const auto rest = [](TokenId a, TokenId b) { return std::vector<TokenId>{a, b}; };
  pool.insert(1, rest(2, 3), 0);
  pool.insert(1, rest(4, 5), 1);
  pool.insert(1, rest(2, 3), 2);  // seen again: now the most recent, but born when first seen
  pool.insert(1, rest(6, 7), 3);
  const auto found = pool.find(1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rest, rest(2, 3));
  EXPECT_EQ(found[0].born, 0);
  EXPECT_EQ(found[1].rest, rest(6, 7));
  EXPECT_TRUE(pool.find(2).empty());
  const PoolChanged changes = pool.take_changes();
  EXPECT_EQ(changes.added.size(), 3u);
  ASSERT_EQ(changes.evicted.size(), 1u);
  EXPECT_EQ(changes.evicted[0].rest, rest(4, 5));
  EXPECT_EQ(changes.n_ngrams, 2);
  EXPECT_EQ(changes.n_keys, 1);
  EXPECT_TRUE(pool.take_changes().added.empty());
}

TEST(NgramPool, an_evicted_ngram_seen_again_keeps_its_history) {
  NgramPool pool(1, 1);
  const std::vector<TokenId> a{5}, b{6};
  pool.insert(0, a, 0);
  pool.count_try(0, a, true);
  pool.take_changes();
  pool.insert(0, b, 1);
  pool.insert(0, a, 1);
  EXPECT_EQ(pool.find(0)[0].rest, a);
  EXPECT_EQ(pool.find(0)[0].n_hits, 1u);
  EXPECT_EQ(pool.find(0)[0].born, 0);
  const PoolChanged changes = pool.take_changes();
  ASSERT_EQ(changes.added.size(), 1u);
  ASSERT_EQ(changes.evicted.size(), 1u);
  EXPECT_EQ(changes.added[0].rest, b);
  EXPECT_EQ(changes.evicted[0].rest, b);
  EXPECT_EQ(changes.n_ngrams, 1);
}

TEST(NgramPool, reports_the_ngrams_of_a_prompt) {
  NgramPool pool(1, 1);
  for (const TokenId next : {5, 6, 5, 7}) pool.insert(0, std::vector<TokenId>{next}, -1);
  pool.collapse_changes();
  const PoolChanged changes = pool.take_changes();
  ASSERT_EQ(changes.added.size(), 1u);
  EXPECT_EQ(changes.added[0].rest, std::vector<TokenId>{7});
  EXPECT_TRUE(changes.evicted.empty());
}

TEST(NgramPool, a_longer_ngram_also_gives_its_prefix) {
  NgramPool pool(3, 3);
  const auto inserted = [&](std::vector<TokenId> rest) {
    pool.insert(1, rest, 0);
    std::vector<std::vector<TokenId>> all;
    for (const PoolNgram& ngram : pool.find(1)) all.push_back(ngram.rest);
    EXPECT_EQ(pool.n_ngrams(), static_cast<int>(all.size()));
    return all;
  };
  using Rests = std::vector<std::vector<TokenId>>;
  inserted({2, 3, 4});
  EXPECT_EQ(inserted({5}), (Rests{{2, 3, 4}, {5}}));
  EXPECT_EQ(inserted({2, 3}), (Rests{{5}, {2, 3, 4}})) << "seen again, so it is the most recent";
  EXPECT_EQ(inserted({2, 4}), (Rests{{5}, {2, 3, 4}, {2, 4}}));
  pool.take_changes();
  EXPECT_EQ(inserted({5, 6, 7}), (Rests{{2, 3, 4}, {2, 4}, {5, 6, 7}}));
  const PoolChanged changes = pool.take_changes();
  ASSERT_EQ(changes.evicted.size(), 1u);
  EXPECT_EQ(changes.evicted[0].rest, (std::vector<TokenId>{5}));
  EXPECT_EQ(inserted({2}), (Rests{{2, 3, 4}, {5, 6, 7}, {2, 4}}))
      << "the most recent with this prefix";
  EXPECT_THROW(inserted({}), ContractError);
}

TEST(NgramPool, counts_tries_and_hits) {
  NgramPool pool(1, 4);
  const std::vector<TokenId> rest{5};
  pool.insert(0, rest, 0);
  pool.count_try(0, rest, true);
  pool.count_try(0, rest, false);
  EXPECT_EQ(pool.find(0)[0].n_tries, 2u);
  EXPECT_EQ(pool.find(0)[0].n_hits, 1u);
  EXPECT_THROW(pool.count_try(9, rest, true), ContractError);
  EXPECT_THROW(pool.insert(0, std::vector<TokenId>{1, 2}, 0), ContractError);
}

}  // namespace
}  // namespace engine::test
