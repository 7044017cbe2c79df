// A training folder read while it grows: partial lines, rewritten files, resumed runs, invalid
// content.
#include "engine/event/recording/training_history.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TrainingFolder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }

  std::string path(const char* file = "") const { return (folder_ / file).string(); }
  void append(const char* file, const std::string& text) const {
    std::ofstream(folder_ / file, std::ios::app | std::ios::binary) << text;
  }
  void rewrite(const char* file, const std::string& text) const {
    std::ofstream(folder_ / "fresh", std::ios::binary) << text;
    fs::rename(folder_ / "fresh", folder_ / file);
  }
  static std::string report(std::int64_t step) {
    return to_json_line({.step = step, .tokens = step * 100, .loss = 3}) + "\n";
  }
  static std::string probe(std::int64_t step, const std::string& last = "b") {
    return R"({"step":)" + std::to_string(step) +
           R"(,"prompt":"Q","ends":["</s>"],"blocks":[[["x","y"],["a","y"],["a",")" + last +
           R"("]],[["b"],["</s>"]]]})" + "\n";
  }
  static std::vector<std::int64_t> steps(const TrainingHistory& history) {
    std::vector<std::int64_t> steps;
    for (const TrainingReport& one : history.reports) steps.push_back(one.step);
    return steps;
  }
  static std::vector<std::int64_t> probed(const TrainingHistory& history) {
    std::vector<std::int64_t> steps;
    for (const ProbeTrajectory& one : history.probes) steps.push_back(one.step);
    return steps;
  }
  std::string refusal(const std::string& of) const {
    try {
      TrainingReader reader(of);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      return error.what();
    }
    return "accepted";
  }

  test::Folder temporary_;
  const fs::path folder_ = temporary_ / "run";
};

TEST_F(TrainingFolder, lines_are_delivered_when_complete) {
  GrowingLines lines(path("a"));
  EXPECT_FALSE(lines.may_have_changed());
  EXPECT_TRUE(lines.read(1000).empty()) << "the file may be missing";
  append("a", "one\ntw");
  EXPECT_TRUE(lines.may_have_changed());
  EXPECT_THAT(lines.read(1000).lines, ElementsAre("one"));
  EXPECT_FALSE(lines.may_have_changed());
  append("a", "o\n");
  const GrowingLines::Update update = lines.read(1000);
  EXPECT_FALSE(update.restarted);
  EXPECT_THAT(update.lines, ElementsAre("two"));
  EXPECT_EQ(lines.line_number(), 2);
}

TEST_F(TrainingFolder, a_long_file_is_read_in_pieces) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::to_string(i) + "\n";
  append("a", text);
  for (const std::size_t size : {1u, 2u, 3u, 64u, 100'000u}) {
    GrowingLines lines(path("a"));
    std::string read;
    bool more = true;
    while (more) {
      const GrowingLines::Update update = lines.read(size);
      EXPECT_FALSE(update.restarted);
      for (const std::string& line : update.lines) read += line + "\n";
      more = update.more;
    }
    EXPECT_EQ(read, text) << size;
  }
}

TEST_F(TrainingFolder, a_rewritten_file_is_read_again) {
  GrowingLines lines(path("a"));
  append("a", "one\ntwo\n");
  lines.read(1000);
  for (const std::string text : {"ONE\n", "TWO\ntwo\n", "one\ntwO\nthree\n", "two\n"}) {
    rewrite("a", text);
    const GrowingLines::Update update = lines.read(1000);
    EXPECT_TRUE(update.restarted) << text;
    std::string read;
    for (const std::string& line : update.lines) read += line + "\n";
    EXPECT_EQ(read, text);
  }
  fs::remove(path("a"));
  EXPECT_TRUE(lines.read(1000).restarted) << "the file was removed";
  EXPECT_EQ(lines.line_number(), 0);
}

TEST_F(TrainingFolder, an_endless_line_is_refused_early) {
  GrowingLines lines(path("a"));
  append("a", std::string(GrowingLines::kMaxLineBytes + 2, 'x'));
  EXPECT_THROW(lines.read(GrowingLines::kMaxLineBytes + 2), Error);
}

TEST_F(TrainingFolder, reports_and_probes_grow_and_partial_lines_wait) {
  append("training.jsonl", report(10) + R"({"step":20,"tok)");
  TrainingReader reader(path());
  const TrainingHistory& history = reader.history();
  EXPECT_EQ(history.name, "run");
  EXPECT_THAT(steps(history), ElementsAre(10));
  EXPECT_THAT(history.probes, IsEmpty());
  const std::uint64_t before = history.version;
  EXPECT_FALSE(reader.may_have_changed());
  reader.read();
  EXPECT_EQ(history.version, before);
  append("training.jsonl", R"(ens":5})"
                           "\n");
  append("probe_trajectories.jsonl", probe(0) + probe(20, "c"));
  EXPECT_TRUE(reader.may_have_changed());
  reader.read();
  EXPECT_GT(history.version, before);
  EXPECT_THAT(steps(history), ElementsAre(10, 20));
  EXPECT_EQ(history.reports[1].tokens, 5);
  ASSERT_THAT(probed(history), ElementsAre(0, 20));
  const ProbeTrajectory& last = history.probes[1];
  ASSERT_EQ(last.blocks.size(), 2u);
  ASSERT_EQ(last.blocks[0].size(), 3u);
  EXPECT_EQ(history.pieces.at(static_cast<std::size_t>(last.blocks[0][2][1])), "c");
  EXPECT_EQ(last.blocks[0][0][1], history.probes[0].blocks[0][0][1])
      << "equal pieces share one number";
  EXPECT_EQ(last.end_ids.at(0), last.blocks[1][1][0]);
  EXPECT_THAT(history.refusals, IsEmpty());
}

TEST_F(TrainingFolder, a_resumed_run_repeats_its_steps) {
  append("training.jsonl", report(10) + report(20) + report(30));
  append("probe_trajectories.jsonl", probe(0) + probe(10) + probe(30));
  TrainingReader reader(path("training.jsonl"));
  // The log is rewritten up to the checkpoint; probes are appended.
  rewrite("training.jsonl", report(10) + report(20));
  append("training.jsonl", report(25));
  append("probe_trajectories.jsonl", probe(30, "c") + probe(20));
  reader.read();
  EXPECT_THAT(steps(reader.history()), ElementsAre(10, 20, 25));
  EXPECT_THAT(probed(reader.history()), ElementsAre(0, 10, 20));
}

TEST_F(TrainingFolder, a_bad_line_ends_reading_with_a_reason) {
  append("training.jsonl", report(10) + "{\"step\":\"many\"}\n" + report(20));
  append("probe_trajectories.jsonl", probe(0));
  TrainingReader reader(path());
  EXPECT_THAT(steps(reader.history()), ElementsAre(10));
  EXPECT_THAT(probed(reader.history()), ElementsAre(0));
  EXPECT_THAT(reader.history().refusals,
              ElementsAre(path("training.jsonl") + ":2: step: expected a whole number"));
  append("training.jsonl", report(30));
  reader.read();
  EXPECT_THAT(steps(reader.history()), ElementsAre(10));
  rewrite("training.jsonl", report(40));
  reader.read();
  EXPECT_THAT(steps(reader.history()), ElementsAre(40));
  EXPECT_THAT(reader.history().refusals, IsEmpty());
}

TEST_F(TrainingFolder, invalid_probes_are_refused_by_field) {
  append("training.jsonl", report(10));
  struct Case {
    std::string line, said;
  };
  for (const Case& c : std::vector<Case>{
           {"[1]", "found no JSON object"},
           {R"({"prompt":"Q"})", "step: expected a whole number"},
           {R"({"step":1})", "prompt: found null, expected a text"},
           {R"({"step":1,"prompt":"Q"})", "blocks: found null, expected a list"},
           {R"({"step":1,"prompt":"Q","blocks":[]})", "blocks: found none"},
           {R"({"step":1,"prompt":"Q","blocks":[[["a"]],7]})", "blocks[1]: found number"},
           {R"({"step":1,"prompt":"Q","blocks":[[["a","b"],["a"]]]})",
            "states of different lengths"},
           {R"({"step":1,"prompt":"Q","blocks":[[["a",3]]]})", "blocks[0]: found number"},
           {R"({"step":1,"prompt":"Q","blocks":[[[]]]})", "blocks[0]: found none"},
       }) {
    rewrite("probe_trajectories.jsonl", c.line + "\n");
    const TrainingReader reader(path());
    EXPECT_THAT(reader.history().refusals, ElementsAre(HasSubstr(c.said))) << c.line;
    EXPECT_THAT(reader.history().refusals[0], HasSubstr("probe_trajectories.jsonl:1: "));
    EXPECT_THAT(reader.history().probes, IsEmpty());
    EXPECT_THAT(steps(reader.history()), ElementsAre(10));
  }
}

TEST_F(TrainingFolder, the_stage_follows_from_the_files_present) {
  append("trajectories.bin", "PE");
  TrainingReader reader(path());
  EXPECT_EQ(reader.history().stage, TrainingStage::Collecting);
  EXPECT_GE(reader.history().silent_seconds, 0);
  EXPECT_LT(reader.history().silent_seconds, 60);
  append("stages.json", "{}");
  reader.read();
  EXPECT_EQ(reader.history().stage, TrainingStage::Measuring);
  append("training.jsonl", report(1));
  reader.read();
  EXPECT_EQ(reader.history().stage, TrainingStage::Training);
  append("model.safetensors", "w");
  fs::last_write_time(path("model.safetensors"),
                      fs::last_write_time(path("training.jsonl")) + std::chrono::seconds(1));
  reader.read();
  EXPECT_EQ(reader.history().stage, TrainingStage::Written);
  // The run continues: the weights are older than the reported steps.
  fs::last_write_time(path("training.jsonl"),
                      fs::last_write_time(path("model.safetensors")) + std::chrono::seconds(1));
  reader.read();
  EXPECT_EQ(reader.history().stage, TrainingStage::Training);
}

TEST_F(TrainingFolder, head_training_starts_with_the_targets_outputs) {
  append("own_outputs.jsonl", "{}\n");
  EXPECT_EQ(TrainingReader(path()).history().stage, TrainingStage::WritingTexts);
}

TEST_F(TrainingFolder, a_folder_without_training_is_refused) {
  EXPECT_THAT(refusal(path()), HasSubstr("found no training.jsonl"));
  EXPECT_THAT(refusal(path("training.jsonl")), HasSubstr("not found"));
  append("notes.jsonl", "{\"id\":1}\n");
  EXPECT_EQ(refusal(path("notes.jsonl")),
            path("notes.jsonl") + ":1: step: expected a whole number");
  fs::create_directory(path("training.jsonl"));
  EXPECT_THAT(refusal(path()), HasSubstr("found no training.jsonl"));
  EXPECT_FALSE(looks_like_training(path()));
  EXPECT_TRUE(looks_like_training(path("notes.jsonl")));
  EXPECT_FALSE(looks_like_training("session.pdrun"));
  append("checkpoint.bin", "c");
  EXPECT_TRUE(looks_like_training(path()));
}

TEST_F(TrainingFolder, a_truncated_log_is_read_to_its_end) {
  const std::string whole = report(10) + report(20) + probe(1);
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    rewrite("training.jsonl", (report(10) + report(20)).substr(0, n));
    rewrite("probe_trajectories.jsonl", probe(1).substr(0, n));
    const TrainingReader reader(path());
    EXPECT_THAT(reader.history().refusals, IsEmpty()) << n;
  }
}

TEST_F(TrainingFolder, altered_bytes_are_read_or_refused) {
  const std::string log = report(10) + report(20), states = probe(1) + probe(2);
  for (std::size_t i = 0; i < std::max(log.size(), states.size()); ++i) {
    for (const char byte : {'\0', '"', '{', '9', '\n', '\xff'}) {
      std::string a = log, b = states;
      if (i < a.size()) a[i] = byte;
      if (i < b.size()) b[i] = byte;
      rewrite("training.jsonl", a);
      rewrite("probe_trajectories.jsonl", b);
      try {
        const TrainingReader reader(path());
        EXPECT_LE(reader.history().reports.size(), 3u);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::BadInput) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace engine
