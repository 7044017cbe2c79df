// Evaluations saved in a file: finished tasks are not repeated, scores of other settings are dropped.
#include "engine/train/run/evaluation_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "tests/engine/train/small_target.h"

namespace engine {
namespace {

class EvaluationFile : public test::SmallTarget {
 protected:
  static EvaluationSettings base_settings() {
    EvaluationSettings settings;
    settings.tasks = {"arith", "plain", "write"};
    settings.levels = {1};
    settings.n_problems = 3;
    settings.max_tokens = 6;
    settings.n_lanes = 2;
    return settings;
  }
  std::string file() const { return path("figures.jsonl"); }
  Evaluation measured(const EvaluationSettings& settings, const std::string& weights = "abc") {
    n_told_ = 0;
    return evaluate_on(*model_, settings, file(), weights, [&](int done, int all) {
      n_told_++;
      EXPECT_LE(done, all);
      return true;
    });
  }
  std::vector<std::string> kept_lines() const {
    std::vector<std::string> lines;
    std::ifstream stream(file());
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  void keep(const std::vector<std::string>& lines) const {
    std::ofstream stream(file());
    for (const std::string& line : lines) stream << line << '\n';
  }
  /// Changes the file's first task to two correct answers, which this model cannot give.
  void mark() const {
    auto lines = kept_lines();
    auto first = nlohmann::ordered_json::parse(lines.at(1));
    ASSERT_EQ(first["scores"][0]["n_correct"], 0);
    first["scores"][0]["n_correct"] = 2;
    lines[1] = first.dump();
    keep(lines);
  }

  int n_told_ = 0;  // calls of the progress function
};

TEST_F(EvaluationFile, saves_each_task_and_measures_none_twice) {
  const std::string plain = to_json(evaluate(*model_, base_settings()));
  EXPECT_EQ(to_json(measured(base_settings())), plain);
  EXPECT_GT(n_told_, 3 * 3) << "one call per step of a measured task";
  ASSERT_EQ(kept_lines().size(), 4u) << "the settings, and three tasks";
  mark();
  const Evaluation again = measured(base_settings());
  EXPECT_EQ(n_told_, 3) << "one call per saved task";
  EXPECT_TRUE(again.complete);
  ASSERT_EQ(again.scores.size(), 3u);
  EXPECT_EQ(again.scores[0].n_correct, 2) << "read, not measured";
  const auto figures = nlohmann::json::parse(plain)["scores"];
  const auto scores = nlohmann::json::parse(to_json(again))["scores"];
  EXPECT_EQ(scores[2], figures[2]) << "forms, passages and entropy too";
  EXPECT_NEAR(scores[1]["perplexity"].get<double>(), figures[1]["perplexity"].get<double>(),
              1e-9 * figures[1]["perplexity"].get<double>());
  EXPECT_TRUE(scores[1]["accuracy"].is_null());
  EXPECT_THAT(to_markdown(again), testing::HasSubstr("| arith | 1 | 3 | 66.7 % |"));

  // Fewer or more tasks, in another order: the scores of the file still apply.
  EvaluationSettings settings = base_settings();
  settings.tasks = {"write", "kb", "arith"};
  const Evaluation others = measured(settings);
  ASSERT_EQ(others.scores.size(), 3u);
  EXPECT_EQ(others.scores[0].task, "write");
  EXPECT_EQ(others.scores[1].task, "kb");
  EXPECT_EQ(others.scores[2].n_correct, 2);
  EXPECT_EQ(kept_lines().size(), 5u);
}

TEST_F(EvaluationFile, drops_scores_of_other_weights_or_problems) {
  const auto expect_measured_again = [&](const EvaluationSettings& settings,
                                         const std::string& weights) {
    measured(base_settings());
    mark();
    const Evaluation again = measured(settings, weights);
    EXPECT_EQ(again.scores.at(0).n_correct, 0);
    EXPECT_EQ(again.scores.at(0).n, settings.n_problems);
    EXPECT_EQ(kept_lines().size(), 4u) << "the old scores are dropped";
    EXPECT_EQ(measured(settings, weights).scores.size(), again.scores.size());
    EXPECT_EQ(n_told_, 3) << "the next evaluation reads the file";
  };
  expect_measured_again(base_settings(), "another hash");
  EvaluationSettings other = base_settings();
  other.n_problems = 2;
  expect_measured_again(other, "abc");
  other = base_settings();
  other.split = Split::Dev;
  expect_measured_again(other, "abc");
  other = base_settings();
  other.levels = {2};
  expect_measured_again(other, "abc");
  other = base_settings();
  other.max_tokens = 5;
  expect_measured_again(other, "abc");
}

TEST_F(EvaluationFile, stopped_evaluation_keeps_finished_tasks) {
  const std::string whole = to_json(evaluate(*model_, base_settings()));
  const auto stopped = [&](int after) {
    return evaluate_on(*model_, base_settings(), file(), "abc", [&](int done, int all) {
      EXPECT_EQ(all, 9);
      return done < after;
    });
  };
  const Evaluation none = stopped(0);
  EXPECT_FALSE(none.complete);
  EXPECT_TRUE(none.scores.empty());
  EXPECT_FALSE(std::filesystem::exists(file())) << "nothing is done yet";
  const Evaluation one = stopped(4);
  EXPECT_FALSE(one.complete);
  ASSERT_GE(one.scores.size(), 1u);
  EXPECT_EQ(one.scores[0].n, 3);
  EXPECT_EQ(kept_lines().size(), 2u);
  mark();
  const Evaluation rest = measured(base_settings());
  EXPECT_TRUE(rest.complete);
  EXPECT_EQ(rest.scores[0].n_correct, 2) << "not measured again";
  auto expected = nlohmann::json::parse(whole);
  expected["scores"][0]["n_correct"] = 2;
  expected["scores"][0]["accuracy"] = 2.0 / rest.scores[0].n_checked;
  EXPECT_EQ(nlohmann::json::parse(to_json(rest)), expected);
}

TEST_F(EvaluationFile, a_task_with_a_partial_line_is_measured_again) {
  measured(base_settings());
  const auto lines = kept_lines();
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - 10);
  const Evaluation again = measured(base_settings());
  EXPECT_EQ(again.scores.size(), 3u);
  EXPECT_GT(n_told_, 3);
  EXPECT_EQ(kept_lines(), lines);
  for (const char* damage : {"{}", "[", R"({"model": "small", "split": "test", "complete": true,
                                            "scores": [{"task": "arith"}]})"}) {
    std::string line = damage;
    std::erase(line, '\n');
    keep({lines[0], line, lines[2]});
    try {
      measured(base_settings());
      ADD_FAILURE() << "accepted " << line;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      EXPECT_THAT(error.what(), testing::HasSubstr(file() + ": not the scores of a model"));
    }
  }
}

TEST_F(EvaluationFile, does_not_replace_a_foreign_file) {
  keep({"a text"});
  try {
    measured(base_settings());
    ADD_FAILURE() << "another program's file was replaced";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("expected figures of `model score`"));
  }
  EXPECT_EQ(kept_lines(), std::vector<std::string>{"a text"});
}

TEST_F(EvaluationFile, unwritable_file_is_an_error) {
  try {
    evaluate_on(*model_, base_settings(), path("none/figures.jsonl"), "abc");
    FAIL() << "the failure was not reported";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
  }
}

}  // namespace
}  // namespace engine
