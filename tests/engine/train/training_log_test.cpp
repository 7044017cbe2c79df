// training.jsonl can be read during a run, after a kill and after a resume.
#include "engine/train/core/training_log.h"

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/types.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

class TrainingLogFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        (fs::temp_directory_path() / ("training_log_test_" + std::to_string(::getpid()))).string();
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path() const { return directory_ + "/training.jsonl"; }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const TrainingReport& report : read_training_reports(path())) steps.push_back(report.step);
    return steps;
  }
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  std::string refusal() const {
    try {
      read_training_reports(path());
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string directory_;
};

TrainingReport report_of(std::int64_t step) {
  return {.step = step,
          .tokens = step * 4096,
          .seconds = 2.25,
          .seconds_left = 60.5,
          .tokens_per_second = 16000,
          .lr = 0.0004,
          .gradient_norm = 1.25,
          .loss = 3.1,
          .losses = {{"head 1", 2.9}, {"features", 0.2}},
          .probes = {{"head 1 top-1", 0.55}}};
}

TEST_F(TrainingLogFile, can_be_read_while_the_run_continues) {
  TrainingLog log(directory_, 0);
  EXPECT_TRUE(read_training_reports(path()).empty());
  log.write(report_of(10));
  EXPECT_EQ(read_training_reports(path()), std::vector{report_of(10)});
  log.write(report_of(20));
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{10, 20}));
}

TEST_F(TrainingLogFile, partial_line_is_read_later) {
  append(to_json_line(report_of(10)) + "\n" + R"({"step":20,"tok)");
  EXPECT_EQ(steps(), std::vector<std::int64_t>{10});
}

TEST_F(TrainingLogFile, resume_drops_lines_after_the_checkpoint) {
  {
    TrainingLog log(directory_, 0);
    for (const int step : {10, 20, 30}) log.write(report_of(step));
  }
  append(R"({"step":40,"tok)");
  TrainingLog log(directory_, 20);
  log.write(report_of(30));
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{10, 20, 30}));
}

TEST_F(TrainingLogFile, a_new_run_begins_a_new_log) {
  TrainingLog(directory_, 0).write(report_of(10));
  TrainingLog(directory_, 0).write(report_of(1));
  EXPECT_EQ(steps(), std::vector<std::int64_t>{1});
}

TEST_F(TrainingLogFile, non_finite_loss_keeps_the_line_valid) {
  TrainingReport report = report_of(10);
  report.loss = 1.0 / 0.0;
  TrainingLog(directory_, 0).write(report);
  report.loss = 0;
  EXPECT_EQ(read_training_reports(path()), std::vector{report});
}

TEST_F(TrainingLogFile, errors_name_line_and_field) {
  append(to_json_line(report_of(10)) + "\n{\"step\":\"many\"}\n");
  EXPECT_EQ(refusal(), path() + ":2: step: expected a whole number");
  fs::remove(path());
  append("{\"step\":1,\"tokens\":2,\"losses\":{\"head 1\":\"low\"}}\n");
  EXPECT_EQ(refusal(), path() + ":1: losses.head 1: found string, expected a number");
  fs::remove(path());
  append("step 1, loss 3\n");
  EXPECT_EQ(refusal(), path() + ":1: found no JSON object, expected a report of a training");
}

}  // namespace
}  // namespace engine
