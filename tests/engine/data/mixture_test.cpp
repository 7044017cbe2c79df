#include <map>

#include <gtest/gtest.h>

#include "engine/data/mixture.h"

namespace engine {
namespace {

constexpr const char* kRecipe =
    R"({"arith": {"weight": 0.5, "levels": [1, 0, 0]}, "blocks": {"weight": 0.5}})";

TEST(Mixture, a_text_is_a_function_of_seed_and_index) {
  const TrainingStream a(kRecipe, 7);
  const TrainingStream b(kRecipe, 7);
  const TrainingStream c(kRecipe, 8);
  int n_equal = 0;
  for (int i = 0; i < 50; i++) {
    EXPECT_EQ(a.text(1000 - i).completion, b.text(1000 - i).completion);
    n_equal += a.text(i).prompt == c.text(i).prompt;
  }
  EXPECT_LT(n_equal, 45);
}

TEST(Mixture, weights_are_shares_of_characters) {
  const TrainingStream stream(kRecipe, 1);
  std::map<std::string, double> chars;
  double total = 0;
  for (int i = 0; i < 3000; i++) {
    const auto text = stream.text(i);
    chars[text.part] += static_cast<double>(text.prompt.size() + text.completion.size());
    total += static_cast<double>(text.prompt.size() + text.completion.size());
  }
  // 64 probe texts give the mean length to about 5 %, 3,000 draws the share to about 2 %.
  EXPECT_NEAR(chars["arith"] / total, 0.5, 0.06);
  EXPECT_NEAR(chars["blocks"] / total, 0.5, 0.06);
}

TEST(Mixture, write_chat_and_plain_can_be_parts) {
  const TrainingStream stream(
      R"({"write": {"weight": 1, "levels": [1, 0, 0]}, "chat": {"weight": 1}, "plain": {"weight": 1,
          "open_texts": false}})",
      4);
  std::map<std::string, int> n;
  for (int i = 0; i < 120; i++) {
    const TrainingText text = stream.text(i);
    n[text.part]++;
    EXPECT_EQ(text.prompt.empty(), text.part == "plain");
    EXPECT_FALSE(text.completion.empty());
  }
  EXPECT_EQ(n.size(), 3u);
}

TEST(Mixture, the_short_answer_is_found_in_the_completion) {
  const std::pair<const char*, const char*> cases[] = {
      {" The sea fits. So the answer is (C).", "C"},
      {" The answer is 4? No. So the answer is yes.", "yes"},
      {"Anna has 8.\n#### -18", "-18"},
      {"Score: 10\nThe sum is right.", "10"},
      {"SELECT name FROM pet", ""},
      {"The answer is", ""}};
  for (const auto& [completion, answer] : cases) {
    TrainingText text;
    text.completion = completion;
    find_answer(text);
    EXPECT_EQ(text.completion.substr(text.answer_begin, text.answer_size), answer) << completion;
  }
}

TEST(Mixture, bad_recipes_are_refused_with_the_field) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "recipe"},
      {"[]", "recipe"},
      {"{}", "recipe"},
      {R"({"arith": 1})", "arith"},
      {R"({"arith": {}})", "arith.weight"},
      {R"({"arith": {"weight": -1}})", "arith.weight"},
      {R"({"arith": {"weight": 1, "levels": [1]}})", "arith.levels"},
      {R"({"arith": {"weight": 1, "levels": [0, 0, 0]}})", "arith.levels"},
      {R"({"nothing": {"weight": 1}})", "nothing"},
      {R"({"chat": {"weight": 1, "open_texts": 1}})", "chat.open_texts"},
      {R"({"chat": {"weight": 1, "open_texts": true}})", "chat.open_texts"},
      {R"({"kb": {"weight": 1, "open_texts": true}})", "kb.open_texts"}};
  for (const auto& [recipe, field] : cases) {
    try {
      const TrainingStream stream(recipe, 1);
      FAIL() << recipe;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace engine
