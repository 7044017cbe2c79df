#include "engine/decode/guess/suffix_automaton.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "engine/decode/guess/suffix_draft.h"
#include "tests/support/decode/run_decoder.h"

namespace engine::test {
namespace {

using Text = std::vector<TokenId>;
using Texts = std::vector<Text>;

/// The slow search: compares a string with every place.
struct Naive {
  Texts texts;

  bool ends_at(const Text& text, std::size_t end, std::span<const TokenId> string) const {
    return end >= string.size() &&
           std::equal(string.begin(), string.end(),
                      text.begin() + static_cast<std::ptrdiff_t>(end - string.size()));
  }
  int count(std::span<const TokenId> string) const {
    int n = 0;
    for (const Text& text : texts)
      for (std::size_t end = 0; end <= text.size(); end++) n += ends_at(text, end, string);
    return n;
  }
  /// Index of the last token of the newest occurrence, among the tokens of all texts.
  int newest(std::span<const TokenId> string) const {
    int found = -1, index = 0;
    for (const Text& text : texts) {
      for (std::size_t end = 1; end <= text.size(); end++, index++)
        if (ends_at(text, end, string)) found = index;
    }
    return found;
  }
  std::map<TokenId, int> followers(std::span<const TokenId> string) const {
    std::map<TokenId, int> found;
    for (const Text& text : texts) {
      for (std::size_t end = 0; end < text.size(); end++)
        if (ends_at(text, end, string)) found[text[end]]++;
    }
    return found;
  }
};

SuffixAutomaton automaton_of(const Texts& texts) {
  SuffixAutomaton automaton;
  for (const Text& text : texts) {
    automaton.begin_text();
    for (const TokenId token : text) automaton.append(token);
  }
  return automaton;
}

/// The state of a string; nullopt if it does not occur.
std::optional<int> state_of(const SuffixAutomaton& automaton, std::span<const TokenId> string) {
  int state = 0;
  for (const TokenId token : string) {
    state = automaton.next(state, token);
    if (state < 0) return std::nullopt;
  }
  return state;
}

Texts random_texts(Dice& dice) {
  const int vocab = dice(1, 5);
  Texts texts;
  for (int i = dice(1, 4); i > 0; i--) texts.push_back(dice.text(dice(0, 24), vocab));
  // Texts that repeat each other's parts, as answers to similar questions do.
  if (dice(0, 1)) texts.push_back(texts.front());
  return texts;
}

TEST(SuffixAutomaton, counts_equal_a_naive_search) {
  Dice dice(3);
  for (int round = 0; round < 150; round++) {
    const Texts texts = random_texts(dice);
    const Naive naive{texts};
    const SuffixAutomaton automaton = automaton_of(texts);
    std::set<Text> strings{dice.text(dice(1, 4), 6)};
    for (const Text& text : texts)
      for (std::size_t from = 0; from < text.size(); from++)
        for (std::size_t to = from + 1; to <= text.size(); to++)
          strings.insert({text.begin() + static_cast<std::ptrdiff_t>(from),
                          text.begin() + static_cast<std::ptrdiff_t>(to)});
    for (const Text& string : strings) {
      const auto state = state_of(automaton, string);
      ASSERT_EQ(state.has_value(), naive.count(string) > 0);
      if (!state) continue;
      ASSERT_EQ(automaton.count(*state), naive.count(string));
      ASSERT_EQ(automaton.newest(*state), naive.newest(string));
      std::map<TokenId, int> followers;
      automaton.for_each_next(
          *state, [&](TokenId token, int to) { followers[token] = automaton.count(to); });
      ASSERT_EQ(followers, naive.followers(string));
    }
  }
}

TEST(SuffixAutomaton, shorter_is_the_longest_suffix_with_more_occurrences) {
  Dice dice(4);
  for (int round = 0; round < 100; round++) {
    const Texts texts = random_texts(dice);
    const Naive naive{texts};
    const SuffixAutomaton automaton = automaton_of(texts);
    for (const Text& text : texts) {
      const auto state = state_of(automaton, text);
      ASSERT_TRUE(state.has_value());
      auto suffix = std::span<const TokenId>(text);
      const int n = naive.count(suffix);
      while (!suffix.empty() && naive.count(suffix) == n) suffix = suffix.subspan(1);
      if (!text.empty()) {
        ASSERT_EQ(automaton.length(automaton.shorter(*state)), static_cast<int>(suffix.size()));
      }
    }
  }
}

TEST(SuffixAutomaton, the_longest_suffix_is_found_after_every_token) {
  Dice dice(5);
  for (int round = 0; round < 100; round++) {
    const Texts texts = random_texts(dice);
    const Naive naive{texts};
    const SuffixAutomaton automaton = automaton_of(texts);
    const Text text = dice.text(dice(0, 30), 5);
    const auto match = automaton.longest_suffix(text);
    auto suffix = std::span<const TokenId>(text);
    while (!suffix.empty() && naive.count(suffix) == 0) suffix = suffix.subspan(1);
    ASSERT_EQ(match.length, static_cast<int>(suffix.size()));
    ASSERT_EQ(automaton.count(match.state), suffix.empty() ? 0 : naive.count(suffix));
  }
}

TEST(SuffixAutomaton, the_repeated_suffix_is_found_while_the_text_grows) {
  Dice dice(6);
  for (int round = 0; round < 100; round++) {
    const Text text = dice.text(30, dice(1, 4));
    SuffixAutomaton automaton;
    for (std::size_t n = 1; n <= text.size(); n++) {
      automaton.append(text[n - 1]);
      const Text part(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
      const Naive naive{{part}};
      auto suffix = std::span<const TokenId>(part);
      while (!suffix.empty() && naive.count(suffix) < 2) suffix = suffix.subspan(1);
      ASSERT_EQ(automaton.repeated_suffix().length, static_cast<int>(suffix.size()));
    }
  }
}

TEST(SuffixAutomaton, no_string_crosses_the_border_of_texts) {
  const SuffixAutomaton automaton = automaton_of({{1, 2}, {3, 4}});
  EXPECT_FALSE(state_of(automaton, Text{2, 3}));
  EXPECT_EQ(automaton.longest_suffix(Text{2, 3}).length, 1);
  EXPECT_EQ(automaton.n_tokens(), 4);
}

TEST(SuffixAutomaton, one_token_may_repeat_for_long) {
  const SuffixAutomaton automaton = automaton_of({Text(3000, 7)});
  EXPECT_EQ(automaton.repeated_suffix().length, 2999);
  EXPECT_EQ(automaton.count(*state_of(automaton, Text{7, 7})), 2999);
}

/// The slow draft: counts followers by scanning the texts.
struct NaiveDraft {
  const Naive& naive;
  SuffixDraftLimits limits;

  struct Open {
    Text string;
    double p;
    int depth;
  };

  void add_followers(std::vector<Open>& open, Text string, double p, int depth) const {
    if (depth > limits.max_depth) return;
    while (!string.empty() && naive.followers(string).empty()) string.erase(string.begin());
    if (string.empty()) return;
    int n = 0;
    for (const auto& [token, count] : naive.followers(string)) n += count;
    for (const auto& [token, count] : naive.followers(string)) {
      Text longer = string;
      longer.push_back(token);
      const double own = p * count / n;
      if (own >= limits.min_p && std::ranges::find(limits.never, token) == limits.never.end())
        open.push_back({std::move(longer), own, depth});
    }
  }

  /// The sum of the largest probabilities of a tree that continues `string`.
  double score(const Text& string) const {
    std::vector<Open> open;
    add_followers(open, string, 1, 1);
    double sum = 0;
    const int n = std::min(limits.max_tokens,
                           static_cast<int>(limits.factor * static_cast<double>(string.size())));
    for (int i = 0; i < n && !open.empty(); i++) {
      const auto best = std::ranges::max_element(open, {}, &Open::p);
      const Open taken = *best;
      open.erase(best);
      sum += taken.p;
      add_followers(open, taken.string, taken.p, taken.depth + 1);
    }
    return sum;
  }

  double best_score(Text suffix) const {
    double best = 0;
    for (; !suffix.empty(); suffix.erase(suffix.begin())) best = std::max(best, score(suffix));
    return best;
  }
};

TEST(SuffixDraft, the_score_equals_that_of_a_naive_search) {
  Dice dice(7);
  int n_drafts = 0;
  for (int round = 0; round < 120; round++) {
    const Texts texts = random_texts(dice);
    const Naive naive{texts};
    const SuffixAutomaton automaton = automaton_of(texts);
    const Text never{4};
    const SuffixDraftLimits limits{.factor = 0.5 * dice(1, 6),
                                   .max_tokens = dice(1, 9),
                                   .max_depth = dice(1, 6),
                                   .min_p = 0.1 * dice(0, 5),
                                   .never = never};
    const Text text = dice.text(dice(1, 10), 5);
    const auto match = automaton.longest_suffix(text);
    const SuffixDraft draft = suffix_draft(automaton, match, limits);
    const Text suffix(text.end() - match.length, text.end());
    ASSERT_NEAR(draft.score, (NaiveDraft{naive, limits}.best_score(suffix)), 1e-8);
    n_drafts += !draft.nodes.empty();
  }
  EXPECT_GT(n_drafts, 50);
}

TEST(SuffixDraft, a_draft_is_a_tree_of_counted_tokens) {
  Dice dice(8);
  for (int round = 0; round < 120; round++) {
    const Texts texts = random_texts(dice);
    const Naive naive{texts};
    const SuffixAutomaton automaton = automaton_of(texts);
    const Text text = dice.text(dice(1, 10), 4);
    const SuffixDraft draft =
        suffix_draft(automaton, automaton.longest_suffix(text), {.factor = 4, .min_p = 0});
    std::set<std::pair<int, TokenId>> children;
    for (std::size_t i = 0; i < draft.nodes.size(); i++) {
      const SuffixDraftNode& node = draft.nodes[i];
      ASSERT_LT(node.parent, static_cast<int>(i));
      ASSERT_TRUE(children.insert({node.parent, node.token}).second) << "two equal siblings";
      ASSERT_GE(node.n_seen, 1);
      ASSERT_LE(node.n_seen, node.n_context);
      ASSERT_EQ(node.n_seen, automaton.count(node.state));
      const double above =
          node.parent < 0 ? 1 : draft.nodes[static_cast<std::size_t>(node.parent)].p;
      ASSERT_NEAR(node.p, above * node.n_seen / node.n_context, 1e-12);
    }
  }
}

TEST(SuffixDraft, longer_matches_give_longer_drafts) {
  const SuffixAutomaton automaton = automaton_of({{1, 2, 3, 4, 5, 6, 7, 8, 9}});
  const auto n_drafted = [&](const Text& end, double factor) {
    return suffix_draft(automaton, automaton.longest_suffix(end),
                        {.factor = factor, .max_tokens = 20})
        .nodes.size();
  };
  EXPECT_EQ(n_drafted({1}, 1), 1U);
  EXPECT_EQ(n_drafted({1, 2}, 1), 2U);
  EXPECT_EQ(n_drafted({9, 1, 2}, 1), 2U);
  EXPECT_EQ(n_drafted({1, 2, 3}, 1.5), 4U);
  EXPECT_EQ(n_drafted({1}, 0.5), 0U);
  EXPECT_EQ(n_drafted({9}, 5), 0U);  // nothing has followed
}

TEST(SuffixDraft, a_chain_takes_the_most_frequent_token) {
  const SuffixAutomaton automaton =
      automaton_of({{1, 2, 3}, {1, 2, 3}, {1, 5, 6}, {1, 5, 7}, {1, 2}});
  const auto match = automaton.longest_suffix(Text{1});
  const SuffixDraft tree = suffix_draft(automaton, match, {.factor = 3, .min_p = 0.3});
  const SuffixDraft chain =
      suffix_draft(automaton, match, {.factor = 3, .min_p = 0.3, .chain = true});
  const auto tokens = [](const SuffixDraft& draft) {
    Text all;
    for (const SuffixDraftNode& node : draft.nodes) all.push_back(node.token);
    return all;
  };
  EXPECT_EQ(tokens(tree), (Text{2, 3, 5}));
  EXPECT_EQ(tokens(chain), (Text{2, 3}));
  EXPECT_EQ(tree.nodes[2].parent, -1);
  EXPECT_DOUBLE_EQ(tree.nodes[2].p, 0.4);
}

TEST(SuffixDraft, a_cycle_continues_at_the_end_of_the_text) {
  SuffixAutomaton automaton;
  for (const TokenId token : {1, 2, 3, 1, 2, 3}) automaton.append(token);
  const SuffixDraft draft =
      suffix_draft(automaton, automaton.repeated_suffix(), {.factor = 3, .max_tokens = 7});
  Text tokens;
  for (const SuffixDraftNode& node : draft.nodes) tokens.push_back(node.token);
  EXPECT_EQ(tokens, (Text{1, 2, 3, 1, 2, 3, 1}));
}

}  // namespace
}  // namespace engine::test
