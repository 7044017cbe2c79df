// Whole training runs of a model of a few thousand weights: the loss falls, and a resumed run ends with
// the same bits as an uninterrupted one.
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"
#include "engine/event/recording/training_report.h"
#include "engine/train/cllm/recipe.h"
#include "engine/train/core/text_queue.h"
#include "engine/train/core/trainer.h"
#include "engine/train/heads/recipe.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/run/recipe.h"
#include "engine/train/run/training_loop.h"
#include "tests/engine/train/small_runs.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

using test::counting;
using test::small_recipe;

class Training : public test::TrainingFolder {};

TEST_F(Training, learns_to_count) {
  double first = 0, last = 0;
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress& p) {
    if (p.step == 1) first = p.completion_loss;
    last = p.completion_loss;
  };
  TrainOptions options;
  options.directory = directory("run");
  options.n_threads = 2;
  const TrainResult result = train(small_recipe("f32"), counting, options, callbacks);
  EXPECT_TRUE(result.finished);
  EXPECT_GT(first, 3.5) << "untrained: log 64 = 4.16";
  EXPECT_LT(last, 1.0);
  EXPECT_GT(result.fill, 0.8);
}

TEST_F(Training, resumed_run_ends_with_the_same_bits) {
  for (const char* compute : {"f32", "auto"}) {
    const TrainRecipe recipe = small_recipe(compute);
    TrainOptions whole;
    whole.directory = directory(std::string("whole ") + compute);
    whole.n_threads = 2;
    const TrainResult expected = train(recipe, counting, whole, {});

    TrainOptions parts = whole;
    parts.directory = directory(std::string("parts ") + compute);
    parts.stop_after_step = 7;
    EXPECT_FALSE(train(recipe, counting, parts, {}).finished);
    parts.resume = true;
    parts.stop_after_step = 0;
    parts.n_threads = 1;  // the sums depend on shards, not on threads
    std::atomic<bool> stop{false};
    TrainCallbacks callbacks;
    callbacks.stop = &stop;
    callbacks.progress = [&](const TrainProgress& p) { stop = p.step == 19; };
    const TrainResult stopped = train(recipe, counting, parts, callbacks);
    EXPECT_FALSE(stopped.finished);
    EXPECT_EQ(stopped.step, 19);
    const TrainResult resumed = train(recipe, counting, parts, {});
    EXPECT_TRUE(resumed.finished);
    EXPECT_EQ(resumed.tokens, expected.tokens);
    EXPECT_EQ(resumed.parameters, expected.parameters) << compute;
    // The checkpoint has no losses of earlier steps, so the mean covers only those of this call.
    EXPECT_EQ(resumed.n_losses, std::min<std::int64_t>(resumed.steps_done, 100));
    EXPECT_LT(resumed.steps_done, resumed.step);
    fs::remove_all(directory_);
  }
}

TEST_F(Training, logs_every_tenth_step_once_across_resumes) {
  TrainOptions options;
  options.directory = directory("run");
  options.n_threads = 1;
  options.resume = true;
  for (const int step : {13, 25}) {
    options.stop_after_step = step;
    train(small_recipe("f32"), counting, options, {});
  }
  std::vector<std::int64_t> steps;
  for (const TrainingReport& report : read_training_reports(directory("run/training.jsonl"))) {
    steps.push_back(report.step);
    EXPECT_EQ(report.losses.at(0).first, "completion");
    EXPECT_GT(report.losses.at(0).second, 0);
    EXPECT_GT(report.tokens_per_second, 0);
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 10, 20}));
}

TEST_F(Training, starts_from_given_weights) {
  TrainRecipe recipe = small_recipe("f32");
  recipe.peak_lr = 0;  // the final weights equal the initial ones
  TrainOptions options;
  options.n_threads = 1;
  options.stop_after_step = 1;
  options.directory = directory("random");
  const std::vector<float> random = train(recipe, counting, options, {}).parameters;
  options.directory = directory("given");
  options.start_from = random;
  for (float& weight : options.start_from) weight += 0.25f;
  EXPECT_EQ(train(recipe, counting, options, {}).parameters, options.start_from);
}

TEST_F(Training, probes_are_logged_and_change_nothing) {
  TrainOptions options;
  options.n_threads = 1;
  options.directory = directory("plain");
  TrainRecipe recipe = small_recipe("f32");
  const TrainResult expected = train(recipe, counting, options, {});

  TrainCallbacks callbacks;
  callbacks.probe = [](const std::vector<float>& parameters) -> NamedFigures {
    return {{"accuracy", 0.25}, {"weights", static_cast<double>(parameters.size())}};
  };
  options.directory = directory("never");
  train(recipe, counting, options, callbacks);
  for (const TrainingReport& report : read_training_reports(directory("never/training.jsonl")))
    EXPECT_TRUE(report.probes.empty()) << "the recipe wants no probes";

  recipe.probe_minutes = 1e-9;
  options.directory = directory("probed");
  options.stop_after_step = 5;
  EXPECT_FALSE(train(recipe, counting, options, callbacks).finished);
  recipe.probe_minutes = 2e-9;  // the interval does not affect the weights
  options.stop_after_step = 0;
  options.resume = true;
  const TrainResult probed = train(recipe, counting, options, callbacks);
  EXPECT_EQ(probed.parameters, expected.parameters);
  std::vector<std::int64_t> steps;
  for (const TrainingReport& report : read_training_reports(directory("probed/training.jsonl"))) {
    if (report.probes.empty()) continue;
    steps.push_back(report.step);
    EXPECT_EQ(report.probes[0], (std::pair<std::string, double>("accuracy", 0.25)));
    EXPECT_EQ(report.probes[1].second, static_cast<double>(probed.parameters.size()));
  }
  std::vector<std::int64_t> expected_steps;  // after every step except the last of a run
  for (std::int64_t step = 1; step < probed.step; step++)
    if (step != 5) expected_steps.push_back(step);
  EXPECT_EQ(steps, expected_steps);
}

TEST_F(Training, a_full_disk_at_a_probe_saves_the_steps) {
  TrainRecipe recipe = small_recipe("f32");
  recipe.probe_minutes = 1e-9;
  TrainOptions options;
  options.n_threads = 1;
  options.directory = directory("run");
  TrainCallbacks callbacks;
  int n_probes = 0;
  callbacks.probe = [&](const std::vector<float>&) -> NamedFigures {
    if (++n_probes == 3) throw Error(ErrorCode::Resources, "probes.jsonl: No space left on device");
    return {};
  };
  const auto failure = [&] {
    try {
      train(recipe, counting, options, callbacks);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Resources);
      return std::string(error.what());
    }
    return std::string("nothing failed");
  };
  const std::string saved = failure();
  EXPECT_NE(saved.find("probes.jsonl: No space left on device; step 3 is saved in"),
            std::string::npos)
      << saved;
  EXPECT_EQ(read_checkpoint(directory("run/checkpoint.bin")).step, 3);
  // If the checkpoint cannot be written either, the message names both.
  n_probes = 0;
  options.directory = directory("full");
  fs::create_directories(options.directory + "/checkpoint.bin.part" + std::to_string(::getpid()));
  const std::string neither = failure();
  EXPECT_NE(neither.find("probes.jsonl"), std::string::npos) << neither;
  EXPECT_NE(neither.find("checkpoint.bin: cannot be created"), std::string::npos) << neither;
}

TEST_F(Training, saved_run_is_not_overwritten) {
  TrainOptions options;
  options.n_threads = 1;
  options.stop_after_step = 1;
  options.directory = directory("run");
  train(small_recipe("f32"), counting, options, {});
  try {
    train(small_recipe("f32"), counting, options, {});
    FAIL() << "overwrote a checkpoint";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
    EXPECT_NE(std::string(error.what()).find("--resume"), std::string::npos);
  }
}

TEST_F(Training, a_finished_run_resumed_does_nothing) {
  TrainOptions options;
  options.n_threads = 1;
  options.directory = directory("run");
  const TrainResult first = train(small_recipe("f32"), counting, options, {});
  options.resume = true;
  const TrainResult again = train(small_recipe("f32"), counting, options, {});
  EXPECT_GT(first.steps_done, 0);
  EXPECT_EQ(again.steps_done, 0);
  EXPECT_TRUE(again.finished);
  EXPECT_EQ(again.parameters, first.parameters);
}

TEST_F(Training, resume_refuses_another_recipes_checkpoint) {
  TrainOptions options;
  options.directory = directory("run");
  options.stop_after_step = 1;
  TrainRecipe recipe = small_recipe("f32");
  train(recipe, counting, options, {});
  recipe.peak_lr = 0.02;
  options.resume = true;
  try {
    train(recipe, counting, options, {});
    FAIL() << "a recipe with another learning rate was resumed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_NE(std::string(error.what()).find("checkpoint.bin: belongs to another recipe"),
              std::string::npos);
  }
}

TEST_F(Training, truncated_or_altered_checkpoint_is_refused) {
  fs::create_directories(directory_);
  const std::string path = directory("checkpoint.bin");
  Checkpoint c;
  c.recipe = "{}";
  c.packer = "packed";
  c.parameters = {1, 2, 3};
  c.mean = c.square = {4, 5, 6};
  write_checkpoint(path, c);
  EXPECT_EQ(read_checkpoint(path).mean, c.mean);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (std::size_t i = 0; i < bytes.size(); i++) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, i);
    EXPECT_THROW(read_checkpoint(path), Error) << "cut at " << i;
    std::string altered = bytes;
    altered[i] = static_cast<char>(altered[i] ^ 0x20);
    std::ofstream(path, std::ios::binary) << altered;
    EXPECT_THROW(read_checkpoint(path), Error) << "altered at " << i;
  }
}

// Runs the training loop without a model, with given losses.
class SkippedSteps : public test::TrainingFolder {
 protected:
  /// Runs the loop to its end. @return the notices
  std::vector<std::string> run(const std::vector<double>& losses) {
    fs::create_directories(directory_);
    TrainOptions options;
    options.directory = directory_.string();
    TrainCallbacks callbacks;
    std::vector<std::string> notices;
    callbacks.notice = [&](const std::string& text) { notices.push_back(text); };
    callbacks.progress = [&](const TrainProgress& p) { reported_steps.push_back(p.step); };
    LoopSettings settings;
    settings.name = "small";
    settings.steps = std::ssize(losses);
    loop.emplace(settings, options, callbacks);
    loop->run(
        [&](std::int64_t step, double) {
          TrainProgress progress;
          progress.tokens = 1;
          progress.loss = progress.completion_loss = losses[static_cast<std::size_t>(step - 1)];
          progress.gradient_norm = std::isinf(progress.loss) ? 1 : progress.loss;
          return progress;
        },
        [&] { n_saved++; });
    return notices;
  }
  std::optional<TrainingLoop> loop;
  std::vector<std::int64_t> reported_steps;
  int n_saved = 0;
};

TEST_F(SkippedSteps, step_with_non_finite_loss_is_skipped_and_reported) {
  const auto notices = run({1, NAN, INFINITY, NAN, NAN, 3, NAN, 5});
  EXPECT_EQ(loop->n_skipped(), 5);
  EXPECT_EQ(reported_steps, (std::vector<std::int64_t>{1, 6, 8}));
  EXPECT_EQ(loop->step, 8);
  EXPECT_EQ(loop->tokens, 8) << "their texts are not read again";
  EXPECT_EQ(loop->n_losses(), 3);
  EXPECT_EQ(loop->mean_loss(), 3);
  EXPECT_EQ(n_saved, 1);
  ASSERT_EQ(notices.size(), 5u);
  EXPECT_EQ(
      notices[1],
      "small: step 3: the loss or its gradient is not finite; the step is skipped and changes no "
      "weight (2 so far)");
}

TEST_F(SkippedSteps, five_in_a_row_end_the_run) {
  try {
    run({1, NAN, NAN, NAN, NAN, NAN, 1});
    ADD_FAILURE() << "the run continued";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Device);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("small: step 6: "),
                                             testing::HasSubstr("5 steps in a row"),
                                             testing::HasSubstr("the last checkpoint is kept"),
                                             testing::HasSubstr("peak_lr")));
  }
  EXPECT_EQ(n_saved, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// From now on the process cannot create threads: no memory for a stack is left, and existing threads are
/// busy.
void use_up_threads() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{4} << 20);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  try {
    while (true) std::thread([] { pause(); }).detach();
  } catch (const std::system_error&) {
  }
}

// Runs in a process of its own, which then exits.
[[noreturn]] void train_without_threads() {
  use_up_threads();
  const TokenSource texts = [](std::int64_t index) {
    return TokenText{.tokens = {static_cast<TokenId>(index)}};
  };
  Workers workers(4);
  TextQueue queue(texts, workers);
  TokenId expected = 0;
  bool right = workers.n_threads() == 1;
  for (int i = 0; i < 3; i++) {
    for (const TokenText& text : queue.take()) right = right && text.tokens[0] == expected++;
    queue.make_ahead();
  }
  std::_Exit(right ? 0 : 1);
}

TEST(TextQueue, works_without_a_background_thread) {
  EXPECT_EXIT(train_without_threads(), testing::ExitedWithCode(0), "");
}

#endif

TEST(TextQueue, returns_all_texts_in_order_with_prefetching) {
  const TokenSource texts = [](std::int64_t index) {
    if (index >= 500) throw Error(ErrorCode::BadInput, "no text 500");
    return TokenText{.tokens = {static_cast<TokenId>(index)}};
  };
  Workers workers(2);
  TextQueue queue(texts, workers);
  queue.next = 7;
  std::int64_t expected = 7;
  const auto take = [&](int n) {
    for (int i = 0; i < n; i++) {
      for (const TokenText& text : queue.take()) ASSERT_EQ(text.tokens[0], expected++);
      ASSERT_EQ(queue.next, expected);
    }
  };
  take(1);
  queue.make_ahead();
  take(3);  // one was prefetched, two were not
  queue.make_ahead();
  take(1);
  queue.make_ahead();  // two of three are left
  take(4);
  queue.make_ahead();
  EXPECT_THROW(take(20), Error);
}

TEST(Recipe, round_trips_through_json) {
  const TrainRecipe recipe = small_recipe("f32");
  EXPECT_EQ(to_json(train_recipe_from(to_json(recipe), "again")), to_json(recipe));
}

TEST(Recipe, directory_is_refused) {
  const std::string folder = DECOSCOPE_SOURCE_DIR "/assets/recipes";
  for (const auto& read : {std::function<void()>([&] { read_train_recipe(folder); }),
                           std::function<void()>([&] { read_tokenizer_recipe(folder); })}) {
    try {
      read();
      FAIL() << "expected a refusal";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      EXPECT_THAT(error.what(),
                  testing::HasSubstr("recipes: found a directory, expected a recipe"));
    }
  }
}

TEST(Recipe, all_recipes_of_the_repository_are_valid) {
  for (const auto& entry :
       fs::recursive_directory_iterator(DECOSCOPE_SOURCE_DIR "/assets/recipes")) {
    const std::string path = entry.path().string();
    if (entry.is_directory()) continue;
    if (entry.path().filename().string().starts_with("tokenizer")) {
      EXPECT_NO_THROW(read_tokenizer_recipe(path)) << path;
    } else if (entry.path().filename().string().find("cllm") != std::string::npos) {
      EXPECT_NO_THROW(read_cllm_recipe(path)) << path;
    } else if (path.find("medusa") != std::string::npos) {
      EXPECT_NO_THROW(read_heads_recipe(path, HeadsKind::Medusa)) << path;
    } else if (path.find("chimera") != std::string::npos) {
      EXPECT_NO_THROW(read_heads_recipe(path, HeadsKind::Chimera)) << path;
    } else if (path.ends_with("outputs.json")) {
      EXPECT_NO_THROW(read_outputs_recipe(path)) << path;
    } else {
      EXPECT_NO_THROW(read_train_recipe(path)) << path;
    }
  }
}

TEST(Recipe, errors_name_the_field_and_the_expected_value) {
  const auto message = [](const char* json) {
    try {
      train_recipe_from(json, "r.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(R"({"peak_lr": "high"})"),
            "r.json: peak_lr: found \"high\", expected a number from 0.0 to 1.0");
  EXPECT_EQ(message(R"({"own_outputs": {"mixture": {"creak": {"weight": 1}}, "count": 2,
                                        "chat": true}})"),
            "r.json: own_outputs: chat: found true, expected false; only a draft with "
            "shares_embedding trains on chats");
  EXPECT_EQ(message(R"({"layers": 3})"), "r.json: layers: no such setting");
  EXPECT_EQ(message(R"({"warmup_step": 3})"),
            "r.json: warmup_step: no such setting; did you mean warmup_steps?");
  EXPECT_EQ(message(R"({"shards": 1e300})"),
            "r.json: shards: found 1e+300, expected a number from 0.0 to 256.0");
  EXPECT_EQ(message(R"({"shards": 1.5})"), "r.json: shards: found 1.5, expected a whole number");
  EXPECT_NE(message("{").find("r.json: line 1, column"), std::string::npos) << message("{");
}

}  // namespace
}  // namespace engine
