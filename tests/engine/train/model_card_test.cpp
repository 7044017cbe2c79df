// The model card of a trained model: its data and its scores.
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "engine/train/run/evaluate.h"
#include "engine/train/run/model_card.h"
#include "tests/support/files.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

class ModelCard : public testing::Test {
 protected:
  /// The card of a model whose recipe names `mixture`. Its texts come from `readable`, which needs
  /// no data folder.
  std::string card(const std::string& mixture,
                   const std::string& readable,
                   const std::string& from = {}) const {
    TrainRecipe recipe;
    recipe.name = "small";
    recipe.model.n_layers = 1;
    recipe.model.n_heads = 2;
    recipe.mixture = mixture;
    TrainResult result;
    result.tokens = 4096;
    result.seconds = 2;
    result.step = 1;
    write_model_card(directory, recipe, result, TrainingStream(readable, 1).shares(), from, {});
    return written();
  }
  /// The card of a draft model trained on texts of the model in `target`.
  std::string draft_card(const std::string& target, const std::string& from = {}) const {
    TrainRecipe recipe;
    recipe.name = "small-draft";
    recipe.target = "large";
    recipe.own_outputs.count = 6;
    recipe.own_outputs.mixture = kArith;
    write_model_card(directory, recipe, {}, TrainingStream(kArith, 1).shares(), from, target);
    return written();
  }
  /// The directory of a model whose card lists `set` as training data.
  std::string model_that_read(const std::string& set) const {
    card(R"({"arith": {"weight": 1}, "real": {"weight": 1, "sets": [")" + set + "\"]}}", kArith);
    std::string model = directory + "/read_" + set;
    fs::create_directories(model);
    fs::rename(directory + "/README.md", model + "/README.md");
    return model;
  }
  std::string written() const { return test::read_file(directory + "/README.md"); }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  const test::Folder folder;
  const std::string directory = folder / ".";
  static constexpr const char* kArith = R"({"arith": {"weight": 1}})";
};

TEST_F(ModelCard, names_open_sets_with_their_licences) {
  const std::string text =
      card(R"({"arith": {"weight": 1}, "real": {"weight": 1, "sets": ["mbpp", "commonsenseqa"]}})",
           kArith);
  EXPECT_TRUE(has(text, "| mbpp | CC BY 4.0 | github.com/google-research/google-research |"));
  EXPECT_TRUE(has(text, "| commonsenseqa | MIT |"));
  EXPECT_TRUE(has(text, "| cos_e | BSD-3-Clause |"));  // the rationales of commonsenseqa
  EXPECT_FALSE(has(text, "gsm8k"));
  EXPECT_FALSE(has(text, "project's licence"));
}

TEST_F(ModelCard, names_sets_that_generated_parts_use) {
  const std::string text =
      card(R"({"chat": {"weight": 1, "open_texts": true}, "plain": {"weight": 1},
               "write": {"weight": 0, "open_texts": true}})",
           kArith);
  EXPECT_TRUE(has(text, "| taskmaster4 | CC BY 4.0 |"));
  EXPECT_TRUE(has(text, "| self_instruct | Apache-2.0 |"));
  EXPECT_FALSE(has(text, "| tinyshakespeare |"));  // the part plain does not use it
  EXPECT_FALSE(has(text, "| gsm8k |"));            // the part write has no weight
}

TEST_F(ModelCard, counts_layers_and_claims_no_missing_scores) {
  const std::string text = card(kArith, kArith);
  EXPECT_TRUE(has(text, "model: 1 layer of width")) << text;
  EXPECT_TRUE(has(text, ", 2 heads)")) << text;
  EXPECT_TRUE(has(text, "the scores below show how many it solves")) << text;
}

TEST_F(ModelCard, states_how_many_steps_its_loss_averages) {
  TrainResult result;
  result.completion_loss = 0.25;
  for (const auto& [n, words] : {std::pair(1, "last 1 step)"), std::pair(100, "last 100 steps)")}) {
    result.n_losses = n;
    TrainRecipe recipe;
    recipe.mixture = kArith;
    write_model_card(directory, recipe, result, TrainingStream(kArith, 1).shares(), {}, {});
    EXPECT_TRUE(has(written(), std::string("0.250 nats a token (mean of the ") + words))
        << written();
  }
}

TEST_F(ModelCard, names_default_sets_only_if_the_recipe_reads_them) {
  const std::string all = card(R"({"arith": {"weight": 1}, "real": {"weight": 0.1}})", kArith);
  for (const char* set : {"gsm8k", "strategyqa", "aqua", "wikisql", "creak", "tinyshakespeare"})
    EXPECT_TRUE(has(all, std::string("| ") + set + " |")) << set;
  EXPECT_FALSE(has(all, "| advising |"));  // used only if a recipe names it
  const std::string none = card(kArith, kArith);
  EXPECT_TRUE(has(none, "trained on generated texts only"));
  EXPECT_TRUE(has(none, "Generated (arith):"));
}

TEST_F(ModelCard, lists_the_data_of_its_initial_model) {
  const std::string bare = directory + "/bare";
  fs::create_directories(bare);
  EXPECT_TRUE(has(card(kArith, kArith, model_that_read("creak")), "| creak | MIT |"));
  const std::string unknown = card(kArith, kArith, bare);
  EXPECT_TRUE(has(unknown, "is unknown"));
  EXPECT_FALSE(has(unknown, "trained on generated texts only"));
}

TEST_F(ModelCard, card_of_a_draft_names_its_target_and_its_data) {
  const std::string target = model_that_read("creak"), weights = model_that_read("aqua");
  const std::string text = draft_card(target);
  EXPECT_TRUE(has(text, "| creak | MIT |")) << text;
  EXPECT_FALSE(has(text, "trained on generated texts only")) << text;
  EXPECT_TRUE(has(
      text,
      "A draft model for large; the scores below show how many of its drafts that model accepts"));
  EXPECT_FALSE(has(text, "how many it solves")) << "a draft model solves nothing by itself";
  EXPECT_TRUE(has(text, "texts that large writes greedily after 6 prompts")) << text;
  EXPECT_TRUE(has(text, "Not evaluated yet; `scripts/family_gates.sh` puts the table here."));
  const std::string both = draft_card(target, weights);
  EXPECT_TRUE(has(both, "| creak |") && has(both, "| aqua |")) << both;
  const std::string unknown = draft_card({}, weights);
  EXPECT_TRUE(has(unknown, "| aqua |") && has(unknown, "is unknown")) << unknown;
}

TEST_F(ModelCard, scores_replace_the_notice_and_earlier_scores) {
  card(kArith, kArith);
  Evaluation evaluation{.model = "small", .split = "test", .scores = {}};
  evaluation.scores.push_back({.task = "arith",
                               .level = 1,
                               .n = 4,
                               .n_checked = 4,
                               .n_correct = 3,
                               .n_ended = 4,
                               .n_tokens = 40,
                               .entropy = 0.125});
  write_scores(directory, to_markdown(evaluation));
  EXPECT_FALSE(has(written(), "Not evaluated yet"));
  EXPECT_TRUE(has(written(), "| arith | 1 | 4 | 75.0 % | 100.0 % | 10 | 0.125 |"));
  evaluation.scores[0].n_correct = 4;
  write_scores(directory, to_markdown(evaluation));
  EXPECT_TRUE(has(written(), "| arith | 1 | 4 | 100.0 % |"));
  EXPECT_FALSE(has(written(), "75.0 %"));
  EXPECT_TRUE(has(written(), "## Data and licences"));
}

TEST_F(ModelCard, scores_list_categories_and_perplexity) {
  Evaluation evaluation{.model = "small", .split = "test", .scores = {}};
  TaskScore write{.task = "write", .level = 1, .n = 4, .n_checked = 4, .n_correct = 1};
  write.forms = {{"passage", {3, 3, 1}}, {"plan", {1, 1, 0}}};
  write.ends = {0, 0, 1, 0, 2};
  write.subjects = {0, 0, 0, 2, 1};
  TaskScore plain{.task = "plain", .level = 2, .n = 5};
  plain.read_only = true;
  plain.loss = std::log(8.0);
  evaluation.scores = {write, plain};
  const std::string text = to_markdown(evaluation);
  EXPECT_TRUE(has(text, "| write | 1 | 4 | 25.0 % |")) << text;
  EXPECT_TRUE(has(text,
                  "0, 1, 2, 3, 4 paragraphs end in their sentence: 0, 0, 1, 0, 2; name its "
                  "subject: 0, 0, 0, 2, 1."))
      << text;
  EXPECT_TRUE(has(text, "right by form: passage 33.3 % of 3, plan 0.0 % of 1.")) << text;
  EXPECT_TRUE(has(text, "plain, level 2: perplexity 8.00 a token, 5 texts read.")) << text;
  EXPECT_FALSE(has(text, "| plain |")) << text;
}

// IO03
TEST_F(ModelCard, failed_rename_is_an_error_and_leaves_no_file) {
  fs::create_directories(directory + "/README.md/in_the_way");
  try {
    write_scores(directory, "table");
    FAIL() << "a folder was overwritten";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    EXPECT_TRUE(has(error.what(), "README.md")) << error.what();
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace engine
