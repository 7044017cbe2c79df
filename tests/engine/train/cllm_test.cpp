// Consistency training: it reduces every loss, gives the same bits after stops and resumes, and makes a
// model directory from a recipe.
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/checkpoint/model_files.h"
#include "engine/data/record.h"
#include "engine/decode/guess/textbook_jacobi.h"
#include "engine/event/recording/training_history.h"
#include "engine/model/model.h"
#include "engine/store/weights_hash.h"
#include "engine/train/cllm/train.h"
#include "engine/train/cllm/trainer.h"
#include "engine/train/cllm/trajectory_file.h"
#include "engine/train/core/parameters.h"
#include "tests/engine/train/small_cllm.h"
#include "tests/engine/train/small_model.h"
#include "tests/engine/train/small_target.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using test::counting_trajectory;
using test::small_cllm_recipe;
using test::small_cllm_training;

class Cllm : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        fs::temp_directory_path() / ("cllm_test_" + std::to_string(::getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string directory(const std::string& name) const {
    fs::create_directories(directory_ / name);
    return (directory_ / name).string();
  }
  fs::path directory_;
};

TEST_F(Cllm, every_trained_loss_falls) {
  for (const std::string more :
       {R"(, "consistency": "global", "divergence": "forward")",
        R"(, "consistency": "global", "divergence": "reverse", "ar_labels": "truth")",
        R"(, "consistency": "global", "divergence": "hard", "smoothing": 0.05)",
        R"(, "consistency": "local", "divergence": "forward")",
        R"(, "consistency": "global", "divergence": "js")",
        R"(, "divergence": "forward", "teacher": "frozen", "ar_weight": 10)"}) {
    CllmProgress first, last;
    CllmCallbacks callbacks;
    callbacks.progress = [&](const CllmProgress& p) {
      if (p.step == 1) first = p;
      last = p;
    };
    const CllmResult result = train_consistency(
        small_cllm_recipe(more), small_cllm_training(),
        {.n_threads = 2, .directory = directory(std::to_string(std::hash<std::string>{}(more)))},
        callbacks);
    EXPECT_TRUE(result.finished);
    EXPECT_EQ(result.step, 30) << "6 epochs of 20 texts, 4 a step";
    EXPECT_EQ(last.done, 1.0);
    EXPECT_LT(last.parts[static_cast<int>(LossPart::Autoregressive)],
              0.7 * first.parts[static_cast<int>(LossPart::Autoregressive)])
        << more;
    EXPECT_LT(last.parts[static_cast<int>(LossPart::Replay)],
              0.7 * first.parts[static_cast<int>(LossPart::Replay)])
        << more;
    EXPECT_GT(last.parts[static_cast<int>(LossPart::Consistency)], 0) << more;
  }
}

TEST_F(Cllm, points_learn_the_predictions_of_their_fixed_points) {
  // With hard labels the loss of chains is a cross-entropy, so its decrease does not come from a
  // teacher that was nearly uniform at first.
  CllmRecipe recipe = small_cllm_recipe(
      R"(, "divergence": "hard", "smoothing": 0, "ar_weight": 0, "replay_weight": 0)");
  recipe.epochs = 40;
  CllmCallbacks callbacks;
  double first = 0, last = 0;
  callbacks.progress = [&](const CllmProgress& p) {
    if (p.step == 1) first = p.parts[static_cast<int>(LossPart::Consistency)];
    last = p.parts[static_cast<int>(LossPart::Consistency)];
    EXPECT_EQ(p.parts[static_cast<int>(LossPart::Replay)], 0);
  };
  train_consistency(recipe, small_cllm_training(), {.n_threads = 2, .directory = directory("run")},
                    callbacks);
  EXPECT_GT(first, 3.5) << "untrained: log 64 = 4.16";
  EXPECT_LT(last, 1.5);
}

TEST_F(Cllm, fresh_chains_alone_train_like_points) {
  // Trajectories without points, as plain decoding collects them.
  CllmTraining answers = small_cllm_training();
  for (Trajectory& t : answers.trajectories) t.blocks.clear();
  const auto trained = [&](const std::string& name, const std::string& more) {
    CllmRecipe recipe =
        small_cllm_recipe(R"(, "divergence": "hard", "smoothing": 0, "ar_weight": 1)" + more);
    recipe.epochs = 40;
    recipe.points = 0;
    CllmCallbacks callbacks;
    double first = 0;
    callbacks.progress = [&](const CllmProgress& p) {
      if (p.step == 1) first = p.parts[static_cast<int>(LossPart::Consistency)];
    };
    const CllmResult result = train_consistency(
        recipe, answers, {.n_threads = 2, .directory = directory(name)}, callbacks);
    EXPECT_GT(first, 3.5) << "untrained: log 64 = 4.16";
    EXPECT_LT(result.parts[static_cast<int>(LossPart::Consistency)], 1.5) << name;
    EXPECT_EQ(result.room.n_points, 0);
    return result.parameters;
  };
  const auto noise = trained("noise", R"(, "fresh_points": 6)");
  EXPECT_NE(trained("refined", R"(, "fresh_points": 6, "fresh_iterations": 2)"), noise);
}

TEST_F(Cllm, resumed_run_ends_with_the_same_bits) {
  for (const char* compute : {"f32", "auto"}) {
    CllmRecipe recipe = small_cllm_recipe(R"(, "fresh_points": 3, "fresh_iterations": 2)");
    recipe.compute = compute;
    const CllmResult expected = train_consistency(
        recipe, small_cllm_training(),
        {.n_threads = 2, .directory = directory(std::string("whole") + compute)}, {});
    CllmOptions parts{.n_threads = 2,
                      .directory = directory(std::string("parts") + compute),
                      .stop_after_step = 7};
    EXPECT_FALSE(train_consistency(recipe, small_cllm_training(), parts, {}).finished);
    parts.resume = true;
    parts.stop_after_step = 0;
    parts.n_threads = 1;  // the sums depend on shards, not on threads
    std::atomic<bool> stop{false};
    CllmCallbacks callbacks;
    callbacks.stop = &stop;
    callbacks.progress = [&](const CllmProgress& p) { stop = p.step == 19; };
    EXPECT_EQ(train_consistency(recipe, small_cllm_training(), parts, callbacks).step, 19);
    const CllmResult resumed = train_consistency(recipe, small_cllm_training(), parts, {});
    EXPECT_TRUE(resumed.finished);
    EXPECT_EQ(resumed.rows, expected.rows);
    EXPECT_EQ(resumed.room, expected.room) << "counted once, however often it was stopped";
    EXPECT_EQ(resumed.parameters, expected.parameters) << compute;
  }
}

TEST_F(Cllm, skipped_points_are_counted_and_in_the_card) {
  // A text of 15 rows and four chains of 5: three fit 32 rows. Every second replayed text does not
  // fit.
  Trajectory t = counting_trajectory(0);
  const std::vector<TokenId> right = t.blocks[0].back();
  std::vector<TokenId> wrong = right;
  for (TokenId& token : wrong) token++;
  t.blocks = {{wrong, wrong, wrong, wrong, right}, {t.blocks[1].back()}};
  CllmTraining alone = small_cllm_training();
  alone.trajectories = {t};
  alone.replay = [](std::int64_t index) {
    TokenText text;
    text.tokens.assign(index % 2 ? 33u : 34u, 5);
    return text;
  };
  CllmRecipe recipe = small_cllm_recipe();
  recipe.context = 32;
  recipe.points = 4;
  const CllmResult result = train_consistency(recipe, std::move(alone),
                                              {.n_threads = 2, .directory = directory("run")}, {});
  EXPECT_EQ(result.step, 2) << "six times one text, four a step";
  EXPECT_EQ(result.room, (RoomCounts{true, 32, 8, 4, 2}));

  CllmOutcome outcome;
  outcome.training = result;
  outcome.collected = {.n_texts = 40, .n_kept = 39, .n_too_long = 1};
  const auto card = [&] { return cllm_card(recipe, test::small_model(2), outcome, "small", ""); };
  EXPECT_THAT(card(), testing::HasSubstr("\n\nTrajectories: 40 answers, 39 kept (0 not checked, 0 "
                                         "not ended); dropped: 0 wrong,"));
  EXPECT_THAT(card(), testing::HasSubstr("- longer than 32 rows: 1 of 40 answers (2.5 %) with "
                                         "their prompts omitted, 8 of 32 points (25.0 %) with "
                                         "their texts omitted, 2 of 4 other texts (50.0 %) "
                                         "truncated\n"));
  recipe.points = 0;
  EXPECT_THAT(card(),
              testing::HasSubstr("\n\nCollected by plain decoding, no trajectories (`points` "
                                 "is 0): 40 answers, 39 kept ("));
  recipe.points = 4;
  outcome.training.room = {};
  EXPECT_THAT(card(), testing::HasSubstr("points and other texts were not counted\n"));
  // With room for everything, and with the true answers as labels.
  recipe = small_cllm_recipe(R"(, "ar_labels": "truth")");
  const CllmResult roomy = train_consistency(recipe, small_cllm_training(),
                                             {.n_threads = 2, .directory = directory("roomy")}, {});
  EXPECT_EQ(roomy.room.n_points, 6 * 20 * 3);
  EXPECT_EQ(roomy.room.n_left_out, 0);
  EXPECT_EQ(roomy.room.n_texts, 30 * 2 + 30 * 4)
      << "30 * 2 replayed texts and 30 * 4 of the trajectories";
  EXPECT_EQ(roomy.room.n_texts_cut, 0);
}

TEST_F(Cllm, checkpoint_of_another_loss_is_refused) {
  CllmOptions options{.n_threads = 1, .directory = directory("run"), .stop_after_step = 1};
  train_consistency(small_cllm_recipe(), small_cllm_training(), options, {});
  try {
    train_consistency(small_cllm_recipe(), small_cllm_training(), options, {});
    FAIL() << "overwrote a checkpoint";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Usage);
  }
  options.resume = true;
  try {
    train_consistency(small_cllm_recipe(R"(, "divergence": "reverse")"), small_cllm_training(),
                      options, {});
    FAIL() << "resumed with another loss";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("belongs to another recipe"));
  }
}

TEST_F(Cllm, reports_have_the_parts_of_the_loss_and_probes) {
  CllmRecipe recipe = small_cllm_recipe();
  recipe.probe_minutes = 1e-9;  // in every step
  CllmCallbacks callbacks;
  callbacks.probe = [](std::int64_t step, const std::vector<float>&) {
    return NamedFigures{{"tokens per step, block", static_cast<double>(step)}};
  };
  train_consistency(recipe, small_cllm_training(),
                    {.n_threads = 1, .directory = directory("run"), .stop_after_step = 3},
                    callbacks);
  const auto reports = read_training_reports(directory("run") + "/training.jsonl");
  ASSERT_EQ(reports.size(), 2u) << "the first step, every tenth, and every probe but the last";
  ASSERT_EQ(reports[0].losses.size(), 3u);
  EXPECT_EQ(reports[0].losses[0].first, "ar");
  EXPECT_EQ(reports[0].losses[1].first, "consistency");
  EXPECT_EQ(reports[0].losses[2].first, "replay");
  ASSERT_EQ(reports[1].probes.size(), 1u);
  EXPECT_EQ(reports[1].probes[0].second, 2);
}

TEST(CllmRecipe, round_trips_through_json) {
  for (const char* more :
       {"", R"(, "divergence": "hard", "teacher": "frozen", "ar_labels": "truth")",
        R"(, "consistency": "local", "divergence": "reverse", "drop_wrong": false)",
        R"(, "replay_mixture": {"kb": {"weight": 1}})",
        R"(, "fresh_points": 5, "fresh_block": 3, "fresh_iterations": 2, "chain_decay": 0.8)"}) {
    const CllmRecipe recipe = small_cllm_recipe(more);
    EXPECT_EQ(to_json(cllm_recipe_from(to_json(recipe), "again")), to_json(recipe));
  }
}

TEST(CllmRecipe, errors_name_the_field_and_the_expected_value) {
  const auto message = [](const std::string& more) {
    try {
      cllm_recipe_from(R"({"mixture": {"arith": {"weight": 1}}, "epochs": 1)" + more + "}",
                       "r.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message(""), "");
  EXPECT_EQ(message(R"(, "divergence": "sideways")"),
            "r.json: divergence: found \"sideways\", expected forward, reverse, js or hard");
  EXPECT_EQ(message(R"(, "augment": 1)"), "r.json: augment: found 1, expected true or false");
  EXPECT_THAT(message(R"(, "blocks": 4)"), testing::HasSubstr("did you mean"));
  EXPECT_THAT(message(R"(, "consistency": "local", "divergence": "hard")"),
              testing::HasSubstr("must be global"));
  EXPECT_THAT(message(R"(, "points": 0)"), testing::HasSubstr("points, fresh_points: both are 0"));
  EXPECT_EQ(message(R"(, "points": 0, "consistency_weight": 0)"), "");
  EXPECT_EQ(message(R"(, "points": 0, "fresh_points": 4)"), "");
  EXPECT_THAT(message(R"(, "context": 100)"), testing::HasSubstr("multiple of 32"));
}

TEST(CllmRecipe, replay_mixture_does_not_change_collecting) {
  const CllmRecipe same = small_cllm_recipe();
  const CllmRecipe other = small_cllm_recipe(R"(, "replay_mixture": {"kb": {"weight": 1}})");
  EXPECT_EQ(collecting_part(other), collecting_part(same));
  EXPECT_NE(training_part(other), training_part(same));
}

TEST_F(Cllm, consistency_weight_moves_to_its_final_value) {
  for (const std::string more : {"", R"(, "final_consistency_weight": 0)"}) {
    CllmCallbacks callbacks;
    callbacks.progress = [&](const CllmProgress& p) {
      const double share = more.empty() ? 1 : 1 - static_cast<double>(p.step - 1) / 30;
      EXPECT_NEAR(p.loss, p.parts[0] + 3 * share * p.parts[1] + p.parts[2], 1e-9) << p.step;
    };
    const CllmResult result = train_consistency(
        small_cllm_recipe(R"(, "consistency_weight": 3)" + more), small_cllm_training(),
        {.n_threads = 2, .directory = directory(more.empty() ? "same" : "moves")}, callbacks);
    EXPECT_EQ(result.step, 30);
  }
}

TEST(CllmRecipe, collects_no_blocks_if_no_points_are_trained) {
  const auto part = [](int points) {
    CllmRecipe recipe = small_cllm_recipe(R"(, "fresh_points": 4)");
    recipe.points = points;
    return collecting_part(recipe);
  };
  EXPECT_EQ(part(3), part(8));
  EXPECT_NE(part(3), part(0)) << "training on points needs collected blocks";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {(std::istreambuf_iterator<char>(file)), {}};
}

class CllmOfSmallTarget : public test::SmallTarget {
 protected:
  /// Runs a recipe with these further fields to its end.
  CllmOutcome trained(const std::string& out, const std::string& more, bool resume = false) const {
    const std::string recipe = path(out + ".json");
    std::ofstream(recipe) << R"({"name": "small-cllm", "mixture": )" << kOwnMixture
                          << R"(, "block": 4, "prompts": 6, "max_new_tokens": 12, "lanes": 4,
      "drop_wrong": false, "token_run": 0, "sentence_run": 0, "points": 2, "batch_texts": 2,
      "replay_texts": 2, "context": 256, "epochs": 1, "peak_lr": 0.01, "warmup_steps": 1,
      "checkpoint_minutes": 100, "probe_minutes": 0, "score_problems": 1, "probe_problems": 1,
      "compute": "f32", "shards": 1)"
                          << more << "}";
    return train_cllm({.recipe = recipe,
                       .target = target_dir(),
                       .assets = {},
                       .out = path(out),
                       .data = {},
                       .resume = resume,
                       .n_threads = 1,
                       .limits = {}},
                      {});
  }
  static constexpr const char* kOwnMixture = R"({"arith": {"weight": 1, "levels": [1, 0, 0]}})";
};

TEST_F(CllmOfSmallTarget, replays_its_own_or_the_named_mixture) {
  const auto made = [&](const std::string& out, const std::string& more) {
    EXPECT_TRUE(trained(out, more).finished);
    return bytes_of(path(out) + "/model.safetensors");
  };
  const std::string replay = R"(, "replay_mixture": )";
  const std::string own = made("own", "");
  EXPECT_EQ(made("named", replay + kOwnMixture), own) << "the same texts, by name";
  const std::string kb = R"({"kb": {"weight": 1}})";
  EXPECT_NE(made("other", replay + kb), own);
  // Without weight in the loss, the replayed texts do not matter.
  const std::string weightless = R"(, "replay_weight": 0)";
  EXPECT_EQ(made("idle", weightless + replay + kb), made("idler", weightless));
  EXPECT_THAT(bytes_of(path("own") + "/README.md"),
              testing::HasSubstr("Replayed texts are from the same mixture."));
  EXPECT_THAT(bytes_of(path("other") + "/README.md"),
              testing::HasSubstr("Replayed texts are from the recipe's replay mixture."));
  try {
    trained("own", replay + kb, true);
    FAIL() << "resumed with other texts";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("belongs to another recipe"));
  }
}

TEST_F(CllmOfSmallTarget, reuses_collected_data_and_baseline_but_not_the_result) {
  namespace fs = std::filesystem;
  ASSERT_TRUE(trained("first", "").finished);
  // The second run can only have read this collecting time and these scores from the files.
  auto stages = nlohmann::json::parse(bytes_of(path("first/stages.json")));
  stages["collect_seconds"] = 4711;
  stages["before"][0]["tokens_per_step_block"] = 77;
  stages["after"][0]["tokens_per_step_block"] = 78;
  fs::create_directories(path("second"));
  std::ofstream(path("second/stages.json")) << stages.dump();
  fs::copy_file(path("first/trajectories.bin"), path("second/trajectories.bin"));
  const CllmOutcome second = trained("second", R"(, "divergence": "reverse")", true);
  EXPECT_TRUE(second.finished);
  EXPECT_EQ(second.collect_seconds, 4711) << "nothing was left to collect";
  EXPECT_THAT(bytes_of(path("second/README.md")),
              testing::HasSubstr("- collecting took 4711 s, training "));
  EXPECT_EQ(second.before.at(0).block, 77) << "the baseline is that of the same target";
  EXPECT_EQ(second.training.step, stages["after_step"]);
  EXPECT_NE(second.after.at(0).block, 78) << "the result is that of other weights";
}

// A stopped run of a recipe with more prompts has answers to later prompts and lacks some of
// earlier ones.
TEST_F(CllmOfSmallTarget, resume_collects_the_missing_prompts) {
  ASSERT_TRUE(trained("whole", "").finished);
  const std::string header =
      collecting_part(read_cllm_recipe(path("whole.json"))) + "\n" + weights_hash(files_);
  const std::vector<CollectedText> all =
      TrajectoryFile(path("whole/trajectories.bin"), header).texts();
  ASSERT_EQ(all.size(), 6u);
  fs::create_directories(path("gaps"));
  {
    TrajectoryFile gaps(path("gaps/trajectories.bin"), header);
    for (std::size_t i = 1; i < all.size(); i++) gaps.add(all[i]);
    CollectedText later = all[0];
    later.trajectory.index = 7;
    gaps.add(later);
    EXPECT_EQ(gaps.size(), 6u);
    EXPECT_EQ(gaps.count_below(6), 5);
  }
  ASSERT_TRUE(trained("gaps", "", true).finished);
  EXPECT_EQ(TrajectoryFile(path("gaps/trajectories.bin"), header).count_below(6), 6);
  EXPECT_EQ(bytes_of(path("gaps/model.safetensors")), bytes_of(path("whole/model.safetensors")));
}

// From a recipe to a directory, on the bundled target.
class CllmRun : public Cllm {
 protected:
  CllmRequest request(const std::string& name) const {
    return {.recipe = DECOSCOPE_SOURCE_DIR "/assets/recipes/tiny-cllm.json",
            .target = {},
            .assets = DECOSCOPE_SOURCE_DIR "/assets",
            .out = (directory_ / name).string(),
            .data = {},
            .n_threads = 2};
  }
};

TEST_F(CllmRun, rows_equal_the_fixed_points_up_to_the_first_error) {
  const ModelFiles files = open_model(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target");
  const auto device = kernels::open_cpu(1);
  const auto model = Model::load(*device, files, {.dtype = files.stored_dtype});
  TrajectoryPrompt prompt;
  prompt.tokens = files.tokenizer->encode(task_generator("arith").make(Split::Dev, 1, 0)->prompt);
  std::vector<Trajectory> found;
  collect_trajectories(
      *model, {.block = 8, .max_new_tokens = 24, .n_lanes = 1, .eos_ids = files.config.eos_ids},
      [&](TrajectoryPrompt& one) {
        one = prompt;
        return !std::exchange(prompt, {}).tokens.empty();
      },
      [&](Trajectory t) { found.push_back(std::move(t)); });
  ASSERT_EQ(found.size(), 1u);
  int n_same = 0, n_apart = 0;
  std::vector<TokenId> text = found[0].prompt;
  for (const BlockPoints& points : found[0].blocks) {
    Sequence prefix(text, model->make_cache());
    prefill(*model, prefix);
    const auto logits_behind = [&](const std::vector<TokenId>& point) {
      const TokenTree tree = block_rows(prefix.last(), point);
      BatchItem item;
      item.cache = &prefix.cache();
      item.tree = &tree;
      item.prefix = prefix.cached_tokens();
      auto out = model->forward(std::span(&item, 1), Wants{.logits = true});
      prefix.cache().commit({});
      return std::move(out.front());
    };
    const StepOutput right = logits_behind(points.back());
    for (const auto& point : points) {
      const StepOutput out = logits_behind(point);
      const int n_right = n_correct_prefix(point, points.back());
      // Row i predicts position i and attends to the positions before it.
      for (int row = 0; row < static_cast<int>(point.size()); row++) {
        const bool same = std::ranges::equal(out.logits_of(row), right.logits_of(row));
        if (row <= n_right) {
          EXPECT_TRUE(same) << row;
        }
        (row <= n_right ? n_same : n_apart) += row <= n_right || !same;
      }
    }
    text.insert(text.end(), points.back().begin(), points.back().end());
  }
  EXPECT_GT(n_same, 50);
  EXPECT_GT(n_apart, 50) << "after a wrong token the distributions differ";
}

TEST_F(CllmRun, resume_after_any_stage_writes_the_same_model) {
  std::string notices;
  CllmRunCallbacks callbacks;
  callbacks.notice = [&](const std::string& text) { notices += text + "\n"; };
  const CllmOutcome whole = train_cllm(request("whole"), callbacks);
  ASSERT_TRUE(whole.finished) << notices;
  EXPECT_EQ(whole.collected.n_texts, 24);
  EXPECT_GT(whole.collected.n_kept, 10);
  EXPECT_GT(whole.collected.n_points, 3 * whole.collected.n_blocks) << "blocks that converge late";
  EXPECT_THAT(notices, testing::HasSubstr("collected: 24 answers"));
  EXPECT_THAT(notices, testing::HasSubstr("positions of points corrected"));

  std::atomic<bool> stop{false};
  CllmRunCallbacks stopping;
  stopping.stop = &stop;
  stopping.collecting = [&](const CollectProgress& p) {
    if (p.done >= 9) stop = true;
  };
  CllmRequest parts = request("parts");
  const CllmOutcome in_collecting = train_cllm(parts, stopping);
  EXPECT_FALSE(in_collecting.finished);
  EXPECT_GE(in_collecting.collected.n_texts, 9);
  EXPECT_LT(in_collecting.collected.n_texts, 24);
  EXPECT_THROW(train_cllm(parts, {}), Error) << "nothing is overwritten";

  parts.resume = true;
  stop = false;
  stopping.collecting = nullptr;
  stopping.training = [&](const CllmProgress& p) { stop = p.step == 2; };
  const CllmOutcome in_training = train_cllm(parts, stopping);
  EXPECT_FALSE(in_training.finished);
  EXPECT_EQ(in_training.training.step, 2);
  stop = false;
  stopping.training = nullptr;
  EXPECT_TRUE(train_cllm(parts, stopping).finished);
  EXPECT_EQ(bytes_of(parts.out + "/model.safetensors"),
            bytes_of(request("whole").out + "/model.safetensors"));

  const ModelFiles model = open_model(parts.out);
  EXPECT_EQ(model.config.n_layers, 6);
  EXPECT_EQ(name_before_training(parts.out), "demo-target");
  EXPECT_EQ(model.draft_name, "demo-draft") << "the same vocabulary, so the same draft";
  const std::string card = bytes_of(parts.out + "/README.md");
  for (const char* words : {"# tiny-cllm", "## Data and licences", "24 answers",
                            "losses at the end", "longer than 256 rows: 0 of 24 answers",
                            "## Before and after", "| arith | 2 |", "\"block\": 8"})
    EXPECT_THAT(card, testing::HasSubstr(words));
  // The trajectories of one unseen prompt, before and after training.
  std::ifstream probes(parts.out + "/probe_trajectories.jsonl");
  std::string line;
  std::vector<nlohmann::json> lines;
  while (std::getline(probes, line)) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["step"], 0);
  EXPECT_GT(lines[1]["step"], 0);
  EXPECT_EQ(lines[0]["prompt"], lines[1]["prompt"]);
  EXPECT_GT(lines[0]["blocks"].size(), 0u);
  // The window's reader gets the same, and sees that the model is written.
  const TrainingReader reader(parts.out);
  EXPECT_EQ(reader.history().stage, TrainingStage::Written);
  EXPECT_TRUE(reader.history().refusals.empty());
  std::ifstream log(parts.out + "/training.jsonl");
  std::string last_report;
  while (std::getline(log, line)) last_report = line;
  EXPECT_EQ(reader.history().reports.back().step, nlohmann::json::parse(last_report)["step"]);
  EXPECT_EQ(reader.history().probes.back().step, lines[1]["step"]);
  ASSERT_EQ(reader.history().probes.size(), 2u);
  const ProbeTrajectory& last = reader.history().probes.back();
  ASSERT_EQ(last.blocks.size(), lines[1]["blocks"].size());
  ASSERT_EQ(last.end_ids.size(), 1u);
  const auto& pieces = reader.history().pieces;
  for (std::size_t b = 0; b < last.blocks.size(); b++)
    for (std::size_t t = 0; t < last.blocks[b].size(); t++)
      for (std::size_t i = 0; i < last.blocks[b][t].size(); i++)
        EXPECT_EQ(pieces[static_cast<std::size_t>(last.blocks[b][t][i])],
                  lines[1]["blocks"][b][t][i].get<std::string>());
}

}  // namespace
}  // namespace engine
