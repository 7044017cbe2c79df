// A draft model trained on texts that a target writes.
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/train/core/shuffled_order.h"
#include "engine/train/run/own_outputs.h"
#include "engine/train/run/train.h"
#include "tests/engine/train/small_target.h"

namespace engine {
namespace {

class DraftOfOwnTexts : public test::SmallTarget {
 protected:
  TrainRequest request(const std::string& out) const {
    const std::string recipe = path("draft.json");
    std::ofstream(recipe) << R"({"name": "small-draft", "target": "small",
      "model": {"layers": 1, "dim": 32, "hidden_dim": 64, "heads": 1, "max_seq_len": 256},
      "own_outputs": {"mixture": {"arith": {"weight": 1, "levels": [1, 0, 0]},
                                  "kb": {"weight": 1}}, "count": 6, "max_tokens": 12},
      "context": 256, "batch_tokens": 512, "open_rows": 2, "peak_lr": 0.01, "warmup_steps": 2,
      "tokens": 40000, "shards": 1})";
    return {.recipe = recipe,
            .tokenizer = target_dir(),
            .out = path(out),
            .data = "",
            .from = "",
            .own_texts = path("texts.jsonl"),
            .target = target_dir(),
            .n_threads = 1,
            .limits = {}};
  }
};

TEST_F(DraftOfOwnTexts, trains_on_texts_of_its_target) {
  ASSERT_TRUE(write_own_outputs(target(), plan(6), path("texts.jsonl"), ""));
  std::ofstream(target_dir() + "/README.md")
      << "```json\n{\"mixture\": {\"real\": {\"weight\": 1, \"sets\": [\"creak\"]}}}\n```\n";
  double first = 0, last = 0;
  const TrainCallbacks callbacks = test::loss_recorder(first, last);
  const TrainResult result = train_model(request("draft"), callbacks);
  EXPECT_TRUE(result.finished);
  // An untrained model guesses, so the initial loss is near ln(vocabulary size). Six texts are soon
  // memorised.
  EXPECT_GT(first, 6.5);
  EXPECT_LT(last, 0.5 * first);
  std::ifstream card(path("draft") + "/README.md");
  const std::string text((std::istreambuf_iterator<char>(card)), {});
  EXPECT_NE(text.find("texts that small writes greedily after 6 prompts"), std::string::npos);
  EXPECT_NE(text.find("| arith |"), std::string::npos);
  EXPECT_NE(text.find("| creak | MIT |"), std::string::npos) << "the data sets of its target";
}

TEST_F(DraftOfOwnTexts, resume_completes_a_killed_run) {
  namespace fs = std::filesystem;
  ASSERT_TRUE(write_own_outputs(target(), plan(6), path("texts.jsonl"), ""));
  TrainRequest wanted = request("draft");
  ASSERT_TRUE(train_model(wanted, {}).finished);
  const std::string card = path("draft") + "/README.md", weights = path("draft/model.safetensors");
  const auto read = [](const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(stream)), {});
  };
  const std::string made = read(weights);
  ASSERT_FALSE(made.empty());
  wanted.resume = true;
  const auto resumed = [&] {
    const TrainResult result = train_model(wanted, {});
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.steps_done, 0);
  };

  fs::remove(card);
  fs::remove(weights);
  resumed();
  EXPECT_EQ(read(weights), made);
  EXPECT_NE(read(card).find("already finished when it was resumed"), std::string::npos);

  std::ofstream(card) << "with scores";
  resumed();
  EXPECT_EQ(read(card), "with scores") << "it was written, and nothing was trained since";

  // A card older than the checkpoint is an earlier run's: this run was killed before it wrote its
  // own.
  fs::last_write_time(card,
                      fs::last_write_time(path("draft/checkpoint.bin")) - std::chrono::seconds(5));
  resumed();
  EXPECT_NE(read(card), "with scores");
}

TEST_F(DraftOfOwnTexts, refuses_tokens_outside_its_vocabulary) {
  const std::string none = std::to_string(files_.config.vocab_size);
  std::ofstream(path("texts.jsonl"))
      << "{\"own_outputs\":1,\"weights\":\"0123\"}\n"
         "{\"index\":0,\"part\":\"kb\",\"n_prompt\":1,\"ended\":true,\"right\":null,"
         "\"tokens\":[1,5,"
      << none << "]}\n";
  try {
    train_model(request("draft"), {});
    FAIL() << "a token outside the vocabulary was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_NE(std::string(error.what()).find("token " + none + " is not in the tokenizer"),
              std::string::npos);
  }
}

TEST(ShuffledOrder, has_every_item_once_per_epoch_in_a_new_order) {
  const ShuffledOrder order(20, 3);
  std::vector<std::vector<std::size_t>> rounds(3);
  for (std::int64_t i = 0; i < 60; i++)
    rounds[static_cast<std::size_t>(i / 20)].push_back(order.at(i));
  EXPECT_NE(rounds[0], rounds[1]);
  EXPECT_EQ(order.at(5), rounds[0][5]) << "at() may be called in any order";
  for (auto& round : rounds) {
    std::sort(round.begin(), round.end());
    for (std::size_t i = 0; i < 20; i++) EXPECT_EQ(round[i], i);
  }
  EXPECT_NE(ShuffledOrder(20, 4).at(0) * 400 + ShuffledOrder(20, 4).at(1) * 20 +
                ShuffledOrder(20, 4).at(2),
            order.at(0) * 400 + order.at(1) * 20 + order.at(2));
}

}  // namespace
}  // namespace engine
