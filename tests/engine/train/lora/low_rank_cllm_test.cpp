// Consistency training of low-rank updates, and on requests to a chat model: losses, resumed runs, files, refused recipes.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/checkpoint/model_files.h"
#include "engine/data/chat_requests.h"
#include "engine/event/recording/training_history.h"
#include "engine/store/weights_hash.h"
#include "engine/train/cllm/train.h"
#include "engine/train/lora/low_rank.h"
#include "engine/train/prompts/output_prompts.h"
#include "tests/engine/train/small_cllm.h"
#include "tests/engine/train/small_target.h"
#include "tests/support/refusal.h"

namespace engine {
namespace {

using test::refusal;
using test::small_cllm_recipe;
using test::small_cllm_training;
using testing::HasSubstr;

constexpr auto kAr = static_cast<std::size_t>(LossPart::Autoregressive);

class LowRankCllm : public test::SmallTarget {
 protected:
  /// Trains on counting texts. @return  the progress of the first and the last step
  std::pair<CllmProgress, CllmProgress> steps_of(const CllmRecipe& recipe,
                                                 const std::string& name) const {
    std::pair<CllmProgress, CllmProgress> ends;
    CllmCallbacks callbacks;
    callbacks.progress = [&](const CllmProgress& p) {
      if (p.step == 1) ends.first = p;
      ends.second = p;
    };
    std::filesystem::create_directories(path(name));
    // With a larger embedding, which is fixed, the logits can be large.
    CllmTraining training = small_cllm_training();
    initialise(training.parameters, ParameterLayout(training.model), training.model, 0.3f, 5);
    train_consistency(recipe, std::move(training), {.n_threads = 2, .directory = path(name)},
                      callbacks);
    return ends;
  }
};

TEST_F(LowRankCllm, starts_as_the_target_and_learns) {
  const std::string more = R"(, "ar_weight": 10, "peak_lr": 0.03)";
  const auto whole = steps_of(small_cllm_recipe(more), "whole");
  const auto low = steps_of(small_cllm_recipe(more + R"(, "lora": {"rank": 8})"), "low");
  EXPECT_EQ(low.first.parts, whole.first.parts) << "B is zero, so the updates change nothing";
  EXPECT_LT(low.second.parts[kAr], 0.7 * low.first.parts[kAr]);
  EXPECT_EQ(low.second.step, 30);
}

TEST_F(LowRankCllm, resumed_run_ends_with_the_same_bits) {
  for (const char* compute : {"f32", "auto"}) {
    CllmRecipe recipe = small_cllm_recipe(
        R"(, "lora": {"rank": 4, "targets": ["q_proj", "down_proj"]}, "teacher": "frozen")");
    recipe.compute = compute;
    const auto run = [&](const std::string& name, bool resume, std::int64_t stop_after,
                         int threads) {
      std::filesystem::create_directories(path(name));
      return train_consistency(recipe, small_cllm_training(),
                               {.n_threads = threads,
                                .resume = resume,
                                .directory = path(name),
                                .stop_after_step = stop_after},
                               {});
    };
    const CllmResult expected = run(std::string("whole") + compute, false, 0, 2);
    const std::string parts = std::string("parts") + compute;
    EXPECT_FALSE(run(parts, false, 7, 2).finished);
    const CllmResult resumed = run(parts, true, 0, 1);
    EXPECT_TRUE(resumed.finished);
    EXPECT_EQ(resumed.parameters, expected.parameters) << compute;
    const LowRankLayout layout(small_cllm_training().model, recipe.lora);
    EXPECT_EQ(std::ssize(resumed.parameters), layout.n) << "the checkpoint has the updates only";
    EXPECT_NE(resumed.parameters, layout.initial(recipe.seed));
  }
}

TEST_F(LowRankCllm, recipes_that_do_not_fit_are_refused) {
  const auto why = [](const std::string& more) {
    return refusal([&] { small_cllm_recipe(more); });
  };
  EXPECT_THAT(why(R"(, "lora": {})"), HasSubstr("lora: rank: found none"));
  EXPECT_THAT(why(R"(, "lora": {"rank": 0})"), HasSubstr("lora: rank: found 0, expected"));
  EXPECT_THAT(why(R"(, "lora": 8)"), HasSubstr("lora: found number, expected an object"));
  EXPECT_THAT(why(R"(, "lora": {"rank": 8, "alpha": 16})"), HasSubstr("lora: alpha: no such"));
  EXPECT_THAT(why(R"(, "lora": {"rank": 8, "targets": ["lm_head"]})"),
              HasSubstr(R"(lora: targets: found ["lm_head"], expected a list of q_proj, )"));
  EXPECT_THAT(why(R"(, "chat": true)"), HasSubstr("replay_texts: found 2, expected 0"));
  EXPECT_THAT(why(R"(, "chat": true, "replay_weight": 0, "ar_labels": "truth")"),
              HasSubstr(R"(ar_labels: found "truth", expected "own")"));
  const CllmRecipe recipe =
      small_cllm_recipe(R"(, "chat": true, "replay_weight": 0, "lora": {"rank": 2, "base": "b"})");
  EXPECT_EQ(to_json(cllm_recipe_from(to_json(recipe), "again")), to_json(recipe));
}

/// A consistency training on requests to a chat model.
class ChatCllm : public LowRankCllm {
 protected:
  void SetUp() override {
    LowRankCllm::SetUp();
    make_chat_model();
  }
  CllmRequest request(const std::string& out, const std::string& more = "") const {
    const std::string recipe = path(out + ".json");
    std::ofstream(recipe) << R"({"name": "small-cllm", "chat": true,
      "mixture": {"gsm8k": {"weight": 1}, "creak": {"weight": 1}}, "lora": {"rank": 4},
      "block": 4, "prompts": 1000, "max_new_tokens": 6, "lanes": 8, "token_run": 0,
      "sentence_run": 0, "points": 2, "batch_texts": 16, "replay_texts": 0, "context": 128,
      "epochs": 1, "peak_lr": 0.01, "warmup_steps": 1, "checkpoint_minutes": 100,
      "probe_minutes": 0, "score_problems": 1, "probe_problems": 1, "compute": "f32", "shards": 1)"
                          << more << "}";
    return {.recipe = recipe,
            .target = target_dir(),
            .assets = {},
            .out = path(out),
            .data = data(),
            .n_threads = 1,
            .limits = {}};
  }
};

TEST_F(ChatCllm, requests_are_answered_and_the_adapter_is_written) {
  std::string notices;
  CllmRunCallbacks callbacks;
  callbacks.notice = [&](const std::string& text) { notices += text + "\n"; };
  const CllmOutcome outcome = train_cllm(request("out"), callbacks);
  ASSERT_TRUE(outcome.finished) << notices;
  EXPECT_THAT(notices, HasSubstr("distinct requests are used, without "));
  EXPECT_THAT(notices, HasSubstr("low-rank updates of rank 4"));

  // The prompts are those of `train outputs`, in the chat template.
  const OutputPrompts prompts({.mixture = R"({"gsm8k": {"weight": 1}, "creak": {"weight": 1}})",
                               .count = 1000,
                               .chat = true},
                              data());
  const CllmRecipe recipe = read_cllm_recipe(path("out.json"));
  TrajectoryFile file(
      path("out/trajectories.bin"),
      collecting_part(recipe) + "\n" + weights_hash(files_) + "\n" + prompts.hash());
  EXPECT_EQ(std::ssize(file), prompts.count());
  EXPECT_EQ(outcome.collected.n_evaluation + outcome.collected.n_texts, prompts.count());
  EXPECT_GT(outcome.collected.n_evaluation, 0) << "one request has an evaluation question";
  std::set<std::string> parts;
  for (const CollectedText& text : file.texts()) {
    const Record record = prompts.record(text.trajectory.index);
    EXPECT_EQ(text.drop == Drop::Evaluation, record.prompt.empty());
    if (text.drop != Drop::None) continue;
    parts.insert(text.trajectory.part);
    EXPECT_EQ(text.trajectory.prompt, prompt_tokens(*model_, record.prompt, true));
  }
  EXPECT_THAT(parts, testing::ElementsAre("creak", "gsm8k"));

  // Before the training the model is the target, whose answers are the likeliest ones.
  ASSERT_EQ(outcome.before.size(), 2u);
  ASSERT_EQ(outcome.after.size(), 2u);
  EXPECT_LT(outcome.before[0].log_likelihood, 0);
  EXPECT_LT(outcome.after[0].log_likelihood, 0);
  const ModelFiles merged = open_model(target_dir() + "+" + path("out"));
  EXPECT_NE(f32_of(merged.tensors->read("model.layers.0.mlp.up_proj.weight")),
            f32_of(files_.tensors->read("model.layers.0.mlp.up_proj.weight")));
  EXPECT_EQ(f32_of(merged.tensors->read("model.embed_tokens.weight")),
            f32_of(files_.tensors->read("model.embed_tokens.weight")));
  TrainingReader reader(path("out"));
  reader.read();
  EXPECT_EQ(reader.history().stage, TrainingStage::Written);
  std::ifstream card(path("out/README.md"));
  const std::string text((std::istreambuf_iterator<char>(card)), {});
  EXPECT_THAT(text, HasSubstr("Low-rank updates (LoRA of rank 4 on q_proj, "));
  EXPECT_THAT(text, HasSubstr("| creak | MIT |"));
  EXPECT_THAT(text, HasSubstr("| task | problems | log-likelihood, nats a token before |"));
}

TEST_F(ChatCllm, resume_after_any_stage_writes_the_same_adapter) {
  const std::string few = R"(, "prompts": 40, "batch_texts": 8)";
  ASSERT_TRUE(train_cllm(request("whole", few), {}).finished);
  std::atomic<bool> stop{false};
  CllmRunCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.collecting = [&](const CollectProgress& p) { stop = p.done >= 9; };
  CllmRequest parts = request("parts", few);
  EXPECT_FALSE(train_cllm(parts, callbacks).finished);
  parts.resume = true;
  stop = false;
  callbacks.collecting = nullptr;
  callbacks.training = [&](const CllmProgress& p) { stop = p.step == 2; };
  EXPECT_EQ(train_cllm(parts, callbacks).training.step, 2);
  EXPECT_TRUE(train_cllm(parts, {}).finished);
  const auto bytes = [&](const std::string& out) {
    std::ifstream file(path(out) + "/adapter_model.safetensors", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  EXPECT_FALSE(bytes("whole").empty());
  EXPECT_EQ(bytes("parts"), bytes("whole"));
}

TEST_F(ChatCllm, target_without_chat_template_is_refused) {
  std::filesystem::remove(target_dir() + "/chat_template.jinja");
  EXPECT_THAT(refusal([&] { train_cllm(request("out"), {}); }),
              HasSubstr("chat template: found none"));
}

}  // namespace
}  // namespace engine
