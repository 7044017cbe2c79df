// `decoscope lesson`.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cli_fixture.h"
#include "tests/support/files.h"

namespace {

using nlohmann::json;

const std::string kLesson = DECOSCOPE_SOURCE_DIR "/assets/lessons/2_draft_and_verify";

TEST_F(Cli, lesson_check_prints_the_answers_of_the_recording) {
  const json checked = json::parse(run("lesson check --json " + kLesson + ".json").out);
  EXPECT_EQ(checked["title"], "Draft and verify");
  EXPECT_EQ(checked["cards"][1]["answer"], "2");
  EXPECT_TRUE(checked["cards"][1]["options"].empty());
  EXPECT_EQ(checked["cards"][4]["answer"], "10") << "proposals from which on it had been slower";
  EXPECT_EQ(checked["cards"][5]["options"], json::parse(R"(["Yes", "No"])"));
  EXPECT_EQ(checked["cards"][5]["answer"], "Yes");
  EXPECT_FALSE(checked["cards"][0].contains("question"));
  EXPECT_NE(run("lesson check " + kLesson + ".json").out.find("card 2: "), std::string::npos);
}

TEST_F(Cli, a_lesson_without_an_answer_is_bad_input) {
  json lesson = json::parse(engine::test::read_file(kLesson + ".json"));
  lesson["cards"][1]["question"]["answer"]["step"] = 4711;
  engine::test::write_file(folder + "/lesson.json", lesson.dump());
  std::filesystem::copy(kLesson + ".pdrun", folder + "/2_draft_and_verify.pdrun");
  const Outcome outcome = run("lesson check " + folder + "/lesson.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("lesson.json: card 2: question: run 2 has no complete step 4711"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Cli, lesson_queries_lists_names_and_arguments) {
  const json queries = json::parse(run("lesson queries --json").out);
  const auto accepted =
      std::ranges::find_if(queries, [](const json& query) { return query["query"] == "accepted"; });
  ASSERT_NE(accepted, queries.end());
  EXPECT_EQ((*accepted)["arguments"], json::parse(R"(["run", "step"])"));
  const std::string lines = run("lesson queries").out;
  EXPECT_NE(lines.find("surviving_path"), std::string::npos) << lines;
  EXPECT_NE(lines.find("  run, than        "), std::string::npos) << lines;
}

}  // namespace
