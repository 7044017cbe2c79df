// Training of Chimera's heads whose tokens the target's first layer encodes.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/model/draft_heads.h"
#include "engine/train/heads/train.h"
#include "tests/engine/train/small_heads.h"
#include "tests/engine/train/small_target.h"
#include "tests/support/models/random_models.h"

namespace engine {
namespace {

using test::Heads;
using test::kDim;
using test::kVocab;
using test::random_text;
using test::Text;

const test::TestModel& target() {
  static const test::TestModel model = [] {
    ModelConfig config = test::odd_config();
    config.dim = kDim;
    config.n_heads = config.n_kv_heads = 2;
    config.head_dim = 16;
    config.vocab_size = kVocab;
    config.tied_embeddings = true;
    return test::random_model("target", config, 3);
  }();
  return model;
}

HeadsConfig config_of(bool sees_grams) {
  HeadsConfig config = test::small_heads(HeadsKind::Chimera);
  config.gram = 1;
  config.by_first_layer = true;
  config.sees_committed_grams = sees_grams;
  return config;
}

class FirstLayerTraining : public testing::Test {
 protected:
  std::unique_ptr<kernels::Device> device_ = kernels::open_cpu(1);
  FirstLayer layer_{load_first_layer(*device_, target().files(), {.dtype = kernels::DType::F32})};
};

TEST_F(FirstLayerTraining, gradient_of_every_weight_is_the_derivative) {
  for (const bool sees_grams : {true, false}) {
    Heads heads(config_of(sees_grams), &layer_);
    test::expect_gradients_of(heads, sees_grams ? "committed tokens seen" : "states alone");
  }
}

/// The losses of the heads over a text, as decoding would draft along its tokens.
std::vector<double> drafted_losses(ChimeraSequence& reader, const Text& text) {
  std::vector<double> loss(3);
  const int n = static_cast<int>(text.tokens.size());
  for (int i = text.n_prompt - 1; i + 2 < n; i++) {
    const int n_known = reader.length();
    std::vector<float> states;
    for (int at = n_known * kDim; at < (i + 1) * kDim; at++)
      states.push_back(kernels::f32_from_bf16(text.hidden[static_cast<std::size_t>(at)].bits));
    reader.append(states, std::span(text.tokens)
                              .subspan(static_cast<std::size_t>(n_known),
                                       static_cast<std::size_t>(i + 1 - n_known)));
    reader.begin_draft();
    for (int k = 0; k < 3 && i + 2 + k < n; k++) {
      const auto next = static_cast<std::size_t>(i + 1 + k);
      const auto logits =
          reader.level(std::vector<int>{k - 1}, std::vector<TokenId>{text.tokens[next]});
      double sum = 0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
      loss[static_cast<std::size_t>(k)] +=
          std::log(sum) -
          static_cast<double>(logits[static_cast<std::size_t>(text.tokens[next + 1])]);
    }
  }
  return loss;
}

TEST_F(FirstLayerTraining, drafting_reads_the_inputs_of_training) {
  const Text text = random_text(20, 4, 1);
  const std::string directory = testing::TempDir() + "/first_layer_training";
  const ModelFiles files = target().files();
  for (const bool sees_grams : {true, false}) {
    Heads heads(config_of(sees_grams), &layer_);
    const auto noise = test::spread(heads.parameters.size(), 11);
    for (std::size_t i = 0; i < noise.size(); i++) heads.parameters[i] += 0.5f * noise[i];
    std::vector<float> gradient;
    const HeadsSums sums =
        heads.sums_of({text.read()}, {.of_head = {1, 1, 1}, .of_feature = 0}, gradient);
    write_heads(directory, heads.config, *as_tensors(heads.parameters, heads.layout.parts),
                kernels::DType::F32);
    const auto drafting = load_chimera(
        *device_, open_heads(directory, &files), files,
        {.dtype = kernels::DType::F32, .scale = {}, .vocab_size = kVocab, .max_seq_len = 64});
    const auto loss = drafted_losses(*drafting->make_sequence(nullptr), text);
    // Sums of 15 rows of logits, each of some hundred f32 terms.
    for (std::size_t k = 0; k < 3; k++) EXPECT_NEAR(sums.loss[k], loss[k], 2e-4 * loss[k]) << k;
  }
}

// If the guesses before a head are right, chains of own guesses equal the text's tokens.
TEST_F(FirstLayerTraining, own_guesses_change_only_later_heads) {
  const Text text = random_text(60, 3, 2);
  Heads heads(config_of(true), &layer_);
  heads.disturb();
  MeasuredRanks own(3), given(3);
  const std::vector<HeadsText> texts = {text.read()};
  heads.pass->rank(heads.weights(), texts, kVocab, true, own);
  heads.pass->rank(heads.weights(), texts, kVocab, false, given);
  EXPECT_EQ(own.all.hits[0], given.all.hits[0]);
  EXPECT_EQ(own.after_right.hits[1], given.after_right.hits[1]);
  EXPECT_NE(own.all.hits[2], given.all.hits[2]);
}

class FirstLayerRuns : public test::SmallTarget {};

TEST_F(FirstLayerRuns, a_run_writes_heads_without_matrices_of_k_grams) {
  const std::string recipe = path("recipe.json");
  const std::string head =
      R"({"name": "small", "heads_of": "chimera", "token_encoder": "first_layer",
        "own_outputs": {"mixture": {"arith": {"weight": 1}}, "count": 12, "max_tokens": 10,
        "lanes": 4}, "probe_texts": 3, "heads": 2, "batch_texts": 3, "peak_lr": 0.01,
        "warmup_steps": 2, "epochs": 4, "probe_steps": 0, "shards": 2)";
  std::ofstream(recipe) << head << "}";
  double first = 0, last = 0;
  const HeadsRequest request{.recipe = recipe,
                             .kind = HeadsKind::Chimera,
                             .out = path("run"),
                             .texts = "",
                             .data = "",
                             .n_threads = 2};
  const HeadsTraining training = make_heads(request, {*model_, files_, "0123"},
                                            {.training = test::loss_recorder(first, last)});
  EXPECT_TRUE(training.result.finished);
  EXPECT_LT(last, 0.8 * first);
  EXPECT_TRUE(training.result.self_fed.has_value());
  const HeadsFiles files = open_heads(path("run"), &files_);
  EXPECT_TRUE(files.config.by_first_layer);
  EXPECT_FALSE(files.tensors->has("gram.0.weight"));
  const HeadsRecipe again =
      heads_recipe_from(to_json(training.recipe), HeadsKind::Chimera, "again");
  EXPECT_TRUE(again.by_first_layer);
  EXPECT_EQ(to_json(again), to_json(training.recipe));
  EXPECT_THAT(test::read_file(path("run") + "/README.md"),
              testing::AllOf(testing::HasSubstr("the target's first layer"),
                             testing::HasSubstr("(free-running):")));
  const auto accuracies = nlohmann::json::parse(test::read_file(path("run") + "/accuracies.json"));
  ASSERT_EQ(accuracies.at("free_running").size(), 2u) << "of every head";
  EXPECT_EQ(accuracies.at("free_running")[0], accuracies.at("heads")[0])
      << "the first head reads no guess";
}

TEST(FirstLayerRecipe, settings_of_k_grams_are_refused) {
  const auto message = [](const std::string& more) {
    try {
      heads_recipe_from(R"({"heads_of": "chimera", "token_encoder": "first_layer", "epochs": 1,
        "own_outputs": {"mixture": {"kb": {"weight": 1}}, "count": 2}, )" +
                            more + "}",
                        HeadsKind::Chimera, "r.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(R"("heads": 2)"), "accepted");
  EXPECT_THAT(message(R"("gram": 3)"), testing::HasSubstr("gram: no such setting"));
  EXPECT_THAT(message(R"("finetune_first_layer": true)"),
              testing::HasSubstr("finetune_first_layer: no such setting"));
}

}  // namespace
}  // namespace engine
