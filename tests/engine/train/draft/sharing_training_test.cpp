// Training a draft that shares the embedding and the output matrix of its target.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/model_files.h"
#include "engine/train/draft/shared_embedding.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/run/own_outputs.h"
#include "engine/train/run/train.h"
#include "tests/engine/train/cpu_learner.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/small_target.h"
#include "tests/engine/train/two_texts.h"

namespace engine {
namespace {

using test::CpuLearner;

/// The same weights in two layouts: with the embedding, and with it frozen outside.
struct SharedLearner {
  SharedLearner(const CpuLearner& whole, std::vector<TokenId> output_tokens)
      : config(shared(whole.config, output_tokens)), layout(config), cpu(Compute::F32) {
    const auto dim = static_cast<std::size_t>(config.dim);
    const auto n_embedding = static_cast<std::size_t>(whole.layout.layers[0].attn_norm);
    embedding.assign(whole.parameters.begin(),
                     whole.parameters.begin() + static_cast<std::ptrdiff_t>(n_embedding));
    parameters.assign(whole.parameters.begin() + static_cast<std::ptrdiff_t>(n_embedding),
                      whole.parameters.end());
    for (const TokenId token : output_tokens) {
      const auto row =
          embedding.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * dim);
      output.insert(output.end(), row, row + static_cast<std::ptrdiff_t>(dim));
    }
    if (output_tokens.empty()) output = embedding;
    packed = pack_weights(parameters.data(), matrices_of(config, layout), Compute::F32);
    packed_output =
        pack_weights(output.data(), {{0, config.n_outputs(), config.dim}}, Compute::F32);
  }
  static ModelConfig shared(ModelConfig config, const std::vector<TokenId>& output_tokens) {
    config.shares_embedding_of = "target";
    config.n_output_tokens = static_cast<int>(output_tokens.size());
    return config;
  }
  /// @return  the losses
  std::vector<float> run(const TrainRows& rows, std::vector<float>& gradient) {
    TrainPass pass(
        cpu.on(), config, layout, 64,
        {.frozen = FrozenEmbedding{embedding.data(), {output.data(), packed_output.get()}}});
    std::vector<float> loss(rows.token.size());
    gradient.assign(parameters.size(), 0);
    pass.forward_backward({parameters.data(), packed.get()}, rows, gradient.data(), loss.data());
    return loss;
  }

  ModelConfig config;
  ParameterLayout layout;
  test::CpuDevice cpu;
  std::vector<float> embedding, output, parameters;
  std::unique_ptr<PackedWeights> packed, packed_output;
};

TEST(SharedEmbedding, has_no_parameters_and_the_same_gradient_of_the_layers) {
  CpuLearner whole(test::small_model());
  SharedLearner shared(whole, {});
  EXPECT_EQ(shared.layout.embedding, -1);
  EXPECT_EQ(shared.layout.n, std::ssize(shared.parameters));
  const test::Texts texts = test::two_texts();
  std::vector<float> expected, found;
  whole.loss_and_gradient(texts.rows(), expected);
  EXPECT_EQ(shared.run(texts.rows(), found), whole.loss);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.end() - std::ssize(found)));
  EXPECT_NE(std::ranges::count(found, 0.0f), std::ssize(found));
}

TEST(SharedEmbedding, a_loss_over_some_tokens_is_a_softmax_over_them) {
  CpuLearner whole(test::small_model());
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < 64; token += 2) tokens.push_back(token);
  SharedLearner shared(whole, tokens);
  test::Texts texts = test::two_texts();
  const std::vector<float> logits = whole.logits_of(texts.rows());
  const SharedEmbedding rows_of{.embedding = {}, .output = {}, .output_tokens = tokens};
  const std::vector<TokenId> target = texts.target;
  rows_of.to_rows(texts.target, texts.weight);
  std::vector<float> gradient;
  const std::vector<float> loss = shared.run(texts.rows(), gradient);
  for (std::size_t row = 0; row < 28; row++) {
    double sum = 0;
    for (const TokenId token : tokens)
      sum += std::exp(static_cast<double>(logits[row * 64 + static_cast<std::size_t>(token)]));
    const double expected =
        std::log(sum) -
        static_cast<double>(logits[row * 64 + static_cast<std::size_t>(target[row])]);
    if (target[row] % 2) {
      EXPECT_EQ(texts.weight[row], 0);
      EXPECT_EQ(loss[row], 0);
    } else {
      EXPECT_NEAR(loss[row], expected, 1e-4);
    }
  }
}

class SharingDraftTraining : public test::SmallTarget {
 protected:
  void SetUp() override {
    SmallTarget::SetUp();
    ASSERT_TRUE(write_own_outputs(target(), plan(6), path("texts.jsonl"), ""));
  }
  TrainRequest request(const std::string& out,
                       const std::string& sharing = kSharing,
                       int tokens = 40000) const {
    const std::string recipe = path("draft.json");
    std::ofstream(recipe) << R"({"name": "small-draft", "target": "small", )" << sharing << R"(,
      "own_outputs": {"mixture": {"arith": {"weight": 1, "levels": [1, 0, 0]},
                                  "kb": {"weight": 1}}, "count": 6, "max_tokens": 12},
      "context": 256, "batch_tokens": 512, "open_rows": 2, "peak_lr": 0.01, "warmup_steps": 2,
      "tokens": )" << tokens
                          << R"(, "shards": 1})";
    return {.recipe = recipe,
            .tokenizer = "",
            .out = path(out),
            .data = "",
            .from = "",
            .own_texts = path("texts.jsonl"),
            .target = target_dir(),
            .n_threads = 1,
            .limits = {}};
  }
  std::string refusal(const TrainRequest& wanted) const {
    try {
      train_model(wanted, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  static constexpr const char* kSharing =
      R"("shares_embedding": true, "output_tokens": 64, "from_layers": [0, 0])";
};

TEST_F(SharingDraftTraining, writes_a_draft_that_needs_its_target) {
  double first = 0, last = 0;
  const TrainCallbacks callbacks = test::loss_recorder(first, last);
  const TrainResult result = train_model(request("draft"), callbacks);
  EXPECT_TRUE(result.finished);
  // The frozen output matrix is random and small, so the loss falls slowly.
  EXPECT_LT(last, 0.95 * first);
  EXPECT_THROW(open_model(path("draft")), Error);
  const ModelFiles draft = open_model(path("draft"), {.target = &files_});
  EXPECT_EQ(draft.config.n_layers, 2);
  EXPECT_EQ(draft.output_tokens.size(), 64u);
  const Checkpoint stored = read_checkpoint(path("draft") + "/checkpoint.bin");
  EXPECT_EQ(stored.parameters.size(), result.parameters.size());
  EXPECT_LT(result.parameters.size(),
            static_cast<std::size_t>(files_.config.vocab_size * files_.config.dim));
  std::ifstream card(path("draft") + "/README.md");
  const std::string text((std::istreambuf_iterator<char>(card)), {});
  EXPECT_THAT(text, testing::HasSubstr("embedding and output matrix of target, which it needs; it "
                                       "proposes the 64 most frequent tokens"));
  EXPECT_THAT(text, testing::HasSubstr("\"output_tokens\": 64"));
}

TEST_F(SharingDraftTraining, starts_with_layers_of_the_target) {
  ASSERT_TRUE(train_model(request("draft", kSharing, 512), {}).finished);
  const ModelFiles draft = open_model(path("draft"), {.target = &files_});
  const std::string name = ".mlp.down_proj.weight";
  const auto a = f32_of(draft.tensors->read("model.layers.1" + name));
  const auto b = f32_of(files_.tensors->read("model.layers.0" + name));
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); i++) {
    difference += std::abs(a[i] - b[i]);
    size += std::abs(b[i]);
  }
  // A few steps with a small learning rate change it little.
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.9 * size);
}

TEST_F(SharingDraftTraining, resumes_with_the_tokens_of_its_checkpoint) {
  std::atomic<bool> stop = false;
  TrainCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.progress = [&](const TrainProgress& p) { stop = p.step == 3; };
  EXPECT_FALSE(train_model(request("draft"), callbacks).finished);
  const std::vector<TokenId> tokens =
      train_recipe_from(read_checkpoint(path("draft") + "/checkpoint.bin").recipe, "saved")
          .output_tokens;
  EXPECT_EQ(tokens.size(), 64u);
  // With more texts, other tokens may be the most frequent ones; the draft keeps its own.
  std::filesystem::remove(path("texts.jsonl"));
  ASSERT_TRUE(write_own_outputs(target(), plan(12), path("texts.jsonl"), ""));
  TrainRequest wanted = request("draft");
  wanted.resume = true;
  check_checkpoint(wanted);
  const TrainResult result = train_model(wanted, {});
  EXPECT_TRUE(result.finished);
  EXPECT_GT(result.step, 3);
  EXPECT_EQ(open_model(path("draft"), {.target = &files_}).output_tokens, tokens);
}

TEST_F(SharingDraftTraining, refuses_recipes_that_do_not_fit) {
  EXPECT_THAT(refusal(request("a", R"("shares_embedding": true)")),
              testing::HasSubstr("from_layers: found none, expected a list"));
  EXPECT_THAT(refusal(request("a", R"("shares_embedding": true, "from_layers": [1])")),
              testing::HasSubstr("from_layers: found 1, expected 0 to 0"));
  EXPECT_THAT(refusal(request("a", R"("from_layers": [0])")),
              testing::HasSubstr("only with \"shares_embedding\": true"));
  EXPECT_THAT(refusal(request(
                  "a", R"("shares_embedding": true, "from_layers": [0], "output_tokens": [5, 3])")),
              testing::HasSubstr("expected a number, or ascending token ids"));
  EXPECT_THAT(refusal(request(
                  "a", R"("shares_embedding": true, "from_layers": [0], "output_tokens": 999968)")),
              testing::HasSubstr("output_tokens: found 999968, expected at most"));
  TrainRequest alone = request("a");
  alone.target.clear();
  EXPECT_THAT(refusal(alone), testing::HasSubstr("name it with --target"));
}

}  // namespace
}  // namespace engine
