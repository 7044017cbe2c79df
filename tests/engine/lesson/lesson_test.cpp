// The files of lessons: the bundled ones, and altered ones that have to be refused.
#include "engine/lesson/lesson.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "tests/support/files.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const fs::path kFolder = DECOSCOPE_SOURCE_DIR "/assets/lessons";

std::vector<fs::path> bundled() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kFolder))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

TEST(Lessons, the_bundled_ones_have_answers) {
  ASSERT_EQ(bundled().size(), 8U);
  for (const fs::path& path : bundled()) {
    SCOPED_TRACE(path);
    const Lesson lesson = read_lesson(path.string());
    EXPECT_LE(fs::file_size(lesson.recording), 60'000U);
    const std::vector<SolvedCard> solved = solve_lesson(lesson, load_lesson_recording(lesson));
    ASSERT_EQ(solved.size(), lesson.cards.size());
    int n_questions = 0;
    for (std::size_t i = 0; i < solved.size(); ++i) {
      EXPECT_EQ(solved[i].text.find('{'), std::string::npos) << solved[i].text;
      EXPECT_EQ(solved[i].reveal.find('{'), std::string::npos) << solved[i].reveal;
      if (!lesson.cards[i].question) continue;
      ++n_questions;
      EXPECT_FALSE(solved[i].answer.text.empty());
      if (!solved[i].options.empty()) {
        EXPECT_LT(solved[i].right.size(), solved[i].options.size());
      }
    }
    EXPECT_GE(n_questions, 3);
  }
}

// A draft proposes during the step, so a card before the step must not quote its proposals.
TEST(Lessons, the_draft_is_not_quoted_before_its_step) {
  const Json lesson = Json::parse(test::read_file((kFolder / "2_draft_and_verify.json").string()));
  for (const Json& card : lesson["cards"]) {
    if (!card.contains("values")) continue;
    for (const auto& [name, query] : card["values"].items()) {
      const std::string text = card["text"].get<std::string>();
      EXPECT_FALSE(query["query"] == "proposed_text" &&
                   text.find("{" + name + "}") != std::string::npos)
          << text;
    }
  }
}

// A lesson in a folder of its own that can be altered.
class Altered : public ::testing::Test {
 protected:
  Altered() {
    const fs::path original = kFolder / "2_draft_and_verify.json";
    json = Json::parse(test::read_file(original.string()));
    fs::copy(fs::path(original).replace_extension(".pdrun"),
             fs::path(folder / "2_draft_and_verify.pdrun"));
  }
  // Returns the refusal of the altered lesson without its path; empty if it is accepted.
  std::string refusal() {
    const std::string path = folder / "lesson.json";
    test::write_file(path, json.dump());
    try {
      const Lesson lesson = read_lesson(path);
      solve_lesson(lesson, load_lesson_recording(lesson));
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::BadInput);
      EXPECT_THAT(error.what(), StartsWith(path + ": "));
      return std::string(error.what()).substr(path.size() + 2);
    }
  }

  test::Folder folder;
  Json json;
};

TEST_F(Altered, the_copy_is_accepted) {
  EXPECT_EQ(refusal(), "");
}

TEST_F(Altered, a_query_without_an_answer_is_refused) {
  json["cards"][1]["question"]["answer"]["step"] = 4711;
  EXPECT_THAT(refusal(),
              AllOf(StartsWith("card 2: question: "), HasSubstr("no complete step 4711")));
}

TEST_F(Altered, an_unknown_field_is_refused) {
  json["cards"][1]["question"]["hint"] = "none";
  EXPECT_THAT(refusal(), StartsWith("card 2: question.hint: "));
}

TEST_F(Altered, an_answer_cannot_be_typed_in) {
  json["cards"][1]["question"]["answer"] = 2;
  EXPECT_THAT(refusal(), StartsWith("card 2: question.answer: found 2, expected an object"));
}

TEST_F(Altered, arguments_have_to_fit_the_query) {
  json["cards"][1]["question"]["answer"].erase("step");
  EXPECT_THAT(refusal(), StartsWith("card 2: question.answer.step: "));
  json["cards"][1]["question"]["answer"]["step"] = 4;
  json["cards"][1]["question"]["answer"]["token"] = 1;
  EXPECT_THAT(refusal(), AllOf(StartsWith("card 2: question.answer.token: "),
                               HasSubstr("accepted has no such argument")));
}

TEST_F(Altered, unknown_queries_and_panels_are_refused) {
  json["cards"][1]["question"]["answer"]["query"] = "acepted";
  EXPECT_THAT(refusal(),
              AllOf(StartsWith("card 2: question.answer.query: "), HasSubstr("accepted")));
  json["cards"][1]["question"]["answer"]["query"] = "accepted";
  json["cards"][0]["show"]["panels"] = {"nonsense"};
  EXPECT_THAT(refusal(), StartsWith("card 1: show.panels: "));
}

TEST_F(Altered, names_in_texts_need_values) {
  json["cards"][0]["text"] = "The prompt was {promt}.";
  EXPECT_THAT(refusal(), StartsWith("card 1: text: found {promt}"));
  json["cards"][0]["text"] = "An open {brace";
  EXPECT_THAT(refusal(), StartsWith("card 1: text: "));
  json["cards"][0]["text"] = "The prompt was {prompt}.";
  EXPECT_THAT(refusal(), StartsWith("card 1: values.gamma: ")) << "an unused value";
}

TEST_F(Altered, the_answer_is_not_named_before_the_reveal) {
  json["cards"][1]["text"] = "It is {answer} of {n}.";
  EXPECT_THAT(refusal(), StartsWith("card 2: text: found {answer}"));
}

TEST_F(Altered, one_choice_has_to_be_right) {
  Json& question = json["cards"][1]["question"];
  question["choices"] = {{{"text", "few"}, {"to", 1}}, {{"text", "many"}, {"from", 90}}};
  EXPECT_THAT(refusal(), HasSubstr("which 0 of the choices contain"));
  question["choices"] = {{{"text", "few"}, {"to", 50}}, {{"text", "many"}, {"from", 0}}};
  EXPECT_THAT(refusal(), HasSubstr("which 2 of the choices contain"));
  question["choices"] = {{{"text", "few"}, {"to", 50}}, {{"text", "many"}, {"from", 50}}};
  EXPECT_EQ(refusal(), "");
}

TEST_F(Altered, runs_and_steps_that_are_shown_have_to_exist) {
  json["cards"][0]["show"]["run"] = 9;
  EXPECT_THAT(refusal(), StartsWith("card 1: show: the recording has no run 9"));
  json["cards"][0]["show"]["run"] = 2;
  json["cards"][0]["show"]["step"] = 999;
  EXPECT_THAT(refusal(), StartsWith("card 1: show: run 2 has no step 999"));
}

TEST_F(Altered, the_recording_has_to_be_beside_the_lesson) {
  json["recording"] = "../2_draft_and_verify.pdrun";
  EXPECT_THAT(refusal(), StartsWith("recording: "));
}

TEST_F(Altered, a_damaged_recording_is_refused) {
  const std::string path = folder / "2_draft_and_verify.pdrun";
  const std::string bytes = test::read_file(path);
  test::write_file(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refusal(), StartsWith("the recording is damaged: "));
}

TEST_F(Altered, a_lesson_without_a_question_is_refused) {
  for (Json& card : json["cards"]) {
    card.erase("question");
    card.erase("reveal");
    card.erase("values");
    card["text"] = "Nothing to ask.";
  }
  EXPECT_THAT(refusal(), StartsWith("cards: "));
}

TEST(Lessons, other_json_files_do_not_look_like_lessons) {
  EXPECT_TRUE(looks_like_lesson(bundled().front().string()));
  EXPECT_FALSE(looks_like_lesson(DECOSCOPE_SOURCE_DIR "/assets/trees/rows8.json"));
  EXPECT_FALSE(looks_like_lesson(DECOSCOPE_SOURCE_DIR "/assets/recordings/first_race.pdrun"));
  EXPECT_FALSE(looks_like_lesson("/nonexistent/lesson.json"));
}

}  // namespace
}  // namespace engine
