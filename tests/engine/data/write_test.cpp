// The write task: scoring of end sentences and subjects, rejection of faults, sources of the
// sentences.
#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/open_texts.h"
#include "engine/data/readers.h"
#include "engine/data/text.h"
#include "engine/data/write/passage.h"
#include "engine/data/write/words.h"
#include "tests/support/files.h"

namespace engine {
namespace {

using Json = nlohmann::json;

const std::vector<std::string> kSentences = {"Anna set the table.", "The cook sold ten eggs.",
                                             "Leo lost the way.",
                                             "The players won the first game."};
const std::vector<std::string> kSubjects = {"Anna", "the cook", "Leo", "the players"};
const std::vector<std::string> kParagraphs = {
    "First Anna read the report. She asked for help. Anna set the table.",
    "Then the cook made a fire. He heard a bird. The cook sold ten eggs.",
    "Later Leo threw the ball. He painted the wall. Leo lost the way.",
    "At last the players sat under the tree. They had no money left. The players won the first "
    "game."};

int score_of(const std::vector<std::string>& paragraphs) {
  return coherency_score(
      count_passage("Passage:\n" + joined(paragraphs, "\n"), kSentences, kSubjects));
}

TEST(Passage, a_wrong_end_costs_two_and_a_wrong_subject_one) {
  EXPECT_EQ(score_of(kParagraphs), 10);
  auto spoiled = kParagraphs;
  std::swap(spoiled[0], spoiled[2]);
  EXPECT_EQ(score_of(spoiled), 4);
  spoiled = kParagraphs;
  spoiled[1] = "Then the cook made a fire. He heard a bird. The cook found a white shell.";
  EXPECT_EQ(score_of(spoiled), 8);
  spoiled[1] = "Then the cook made a fire. He heard a bird.";
  EXPECT_EQ(score_of(spoiled), 8);
  spoiled[1] = "Then Mia made a fire. She heard a bird. The cook sold ten eggs.";
  EXPECT_EQ(score_of(spoiled), 9);
  spoiled[1] = "The cook sold ten eggs.";  // the paragraph itself does not name the cook
  EXPECT_EQ(score_of(spoiled), 9);
  EXPECT_EQ(score_of({"a", "b", "c", "d"}), 1);
  EXPECT_EQ(score_of({}), 1);
}

TEST(Passage, ends_and_subjects_match_whole_words) {
  const PassageCount count = count_passage(
      "Plan:\nNo. Anna set the table.\n\nPassage:\n\nFirst Annabel sat. So Anna set the table.\n\n"
      "Then the cooks met. The cook sold ten eggs!\n",
      kSentences, kSubjects);
  EXPECT_EQ(count.n_paragraphs, 2);
  EXPECT_EQ(count.n_ends(), 1);
  EXPECT_EQ(count.n_subjects(), 0);
  EXPECT_TRUE(count_passage("He said:Anna set the table.", {kSentences[0]}, {}).n_ends() == 0);
}

TEST(Write, the_word_lists_have_the_specified_sizes) {
  EXPECT_EQ(write_subjects().size(), 80u);
  EXPECT_EQ(write_adverbials().size(), 40u);
  std::set<std::string_view> predicates;
  for (int theme = 0; theme < kWriteThemes; theme++)
    predicates.insert(write_predicates(theme).begin(), write_predicates(theme).end());
  EXPECT_EQ(predicates.size(), 120u);
}

// Records of one form.
std::vector<Record> records_of(const std::string& form, int count, int level = 1) {
  std::vector<Record> records;
  for (int i = 0; static_cast<int>(records.size()) < count && i < 4000; i++) {
    auto record = task_generator("write").make(Split::Test, level, i);
    if (Json::parse(record->check).at("form") == form) records.push_back(std::move(*record));
  }
  EXPECT_EQ(static_cast<int>(records.size()), count) << form;
  return records;
}

bool right(const Record& record, const std::string& completion) {
  return check_record(record, completion).correct;
}

TEST(Write, every_fault_makes_a_passage_wrong) {
  for (const char* form : {"passage", "plan, passage"}) {
    for (const Record& record : records_of(form, 12)) {
      const auto sentences =
          Json::parse(record.check).at("sentences").get<std::vector<std::string>>();
      const auto subjects =
          Json::parse(record.check).at("subjects").get<std::vector<std::string>>();
      auto paragraphs = paragraphs_of(record.completion);
      ASSERT_EQ(paragraphs.size(), 4u);
      for (const std::string& paragraph : paragraphs) {
        std::set<std::string> reported;  // the sentences of a passage differ
        for (const std::string& part : split_text(paragraph, '.')) {
          std::size_t n = 0;
          for (int theme = 0; theme < kWriteThemes; theme++)
            for (const auto predicate : write_predicates(theme))
              if (names_phrase(part, predicate))
                n += reported.insert(std::string(predicate)).second;
          EXPECT_TRUE(trimmed(part).empty() || n > 0) << paragraph;
        }
      }
      const auto passage = [&](const std::vector<std::string>& lines) {
        return "Passage:\n" + joined(lines, "\n");
      };
      EXPECT_TRUE(right(record, passage(paragraphs)));
      auto spoiled = paragraphs;
      std::swap(spoiled[0], spoiled[3]);
      EXPECT_FALSE(right(record, passage(spoiled))) << "two paragraphs are swapped";
      spoiled = paragraphs;
      spoiled.pop_back();
      EXPECT_FALSE(right(record, passage(spoiled))) << "a paragraph is missing";
      spoiled = paragraphs;
      spoiled[2].resize(spoiled[2].size() - sentences[2].size());
      EXPECT_FALSE(right(record, passage(spoiled))) << "a paragraph lacks its end sentence";
      spoiled = paragraphs;
      spoiled[1] += " It was so.";
      EXPECT_FALSE(right(record, passage(spoiled))) << "a paragraph ends in another sentence";
      spoiled = paragraphs;
      spoiled[3] = "At last nobody came. " + sentences[3];
      EXPECT_FALSE(right(record, passage(spoiled))) << "a paragraph does not name its subject";
      EXPECT_EQ(check_record(record, passage(spoiled)).reason,
                "4 of 4 paragraphs end in their sentence, 3 name its subject");
    }
  }
}

TEST(Write, a_plan_with_other_subjects_is_wrong) {
  for (const Record& record : records_of("plan", 10)) {
    auto lines = split_text(trimmed(record.completion), '\n');
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_TRUE(right(record, "Plan:\n" + joined(lines, "\n")));
    auto spoiled = lines;
    std::swap(spoiled[0], spoiled[1]);
    EXPECT_FALSE(right(record, joined(spoiled, "\n")));
    spoiled = lines;
    spoiled[2] = "Later: nobody";
    EXPECT_FALSE(right(record, joined(spoiled, "\n")));
    lines.pop_back();
    EXPECT_FALSE(right(record, joined(lines, "\n")));
  }
}

TEST(Write, a_score_is_that_of_the_text_in_the_prompt) {
  std::set<int> scores;
  for (const char* form : {"plan score", "passage score"}) {
    for (const Record& record : records_of(form, 60)) {
      const int score = std::stoi(record.answer);
      scores.insert(score);
      EXPECT_TRUE(right(record, " " + record.answer + ".")) << record.id;
      EXPECT_FALSE(right(record, " " + std::to_string(score == 10 ? 9 : score + 1) + "."));
      EXPECT_FALSE(right(record, " good."));
      EXPECT_EQ(read_score(record.completion), score) << record.completion;
    }
  }
  for (const int score : {4, 6, 8, 9, 10}) EXPECT_TRUE(scores.contains(score)) << score;
}

// True if the prompt is the template with any texts in its slots.
bool is_filled(const std::string& prompt, const std::string& pattern) {
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < pattern.size();) {
    if (pattern[begin] == '{') {
      begin = pattern.find('}', begin) + 1;
      continue;
    }
    const std::size_t end = std::min(pattern.find('{', begin), pattern.size());
    const std::string literal = pattern.substr(begin, end - begin);
    const std::size_t found = end == pattern.size() && prompt.ends_with(literal)
                                  ? prompt.size() - literal.size()
                                  : prompt.find(literal, at);
    if (found == std::string::npos || found < at) return false;
    at = found + literal.size();
    begin = end;
  }
  return at == prompt.size();
}

TEST(Write, prompts_match_the_tree_of_thoughts_prompts) {
  std::ifstream file(DECOSCOPE_SOURCE_DIR "/assets/prompts/tot/writing.jsonl");
  const char* const forms[] = {"plan", "plan score", "plan, passage", "passage score"};
  std::string line;
  for (const char* form : forms) {
    ASSERT_TRUE(std::getline(file, line));
    const std::string pattern = Json::parse(line).at("prompt");
    int n = 0;
    for (const Record& record : records_of(form, 20)) {
      if (record.prompt.starts_with("USER: ")) continue;
      n++;
      EXPECT_TRUE(is_filled(record.prompt, pattern)) << record.prompt << "\n" << pattern;
      EXPECT_TRUE(record.prompt.starts_with("Write a coherent passage of 4 short paragraphs. "));
    }
    EXPECT_GT(n, 3) << form;
  }
}

TEST(LeadingName, is_the_name_at_the_beginning_of_a_sentence) {
  const std::pair<const char*, const char*> cases[] = {
      {"Tina walked home.", "Tina"},
      {"New Orleans lies on a river.", "New Orleans"},
      {"The cook walked home.", ""},
      {"He walked home.", ""},
      {"Tina's dog walked home.", ""},
      {"Tina, the cook, walked home.", ""},
      {"tina walked home.", ""},
      {"Tina", "Tina"},
      {"", ""}};
  for (const auto& [sentence, name] : cases) EXPECT_EQ(leading_name(sentence), name) << sentence;
}

// A data folder with a few sentences in the formats of the sets that sentences are drawn from.
class OwnSentences : public testing::Test {
 protected:
  void SetUp() override {
    const auto sum = [](const std::string& question) {
      return Json{{"question", question}, {"answer", "#### 1"}};
    };
    put("gsm8k/train.jsonl",
        {sum("Marlo carried seven jars to the shed. How many jars are there?"),
         sum("Ottilie asked her two neighbours for lamps. How many lamps are there?"),
         sum("There were seven jars in the old shed. How many jars are there?"),
         sum("Wilma waited at the gate until noon. For how long?"), sum("Vera ran. How far?")});
    put("gsm8k/test.jsonl",
        {sum("Ottilie asked her two neighbours for lamps! Nobody came. How many?"),
         sum("Ottilie asked her two neighbours for lamps. Who came?")});
    const Json stem = {
        {"id", "a"},
        {"question",
         {{"stem", "Wanda looked for a dry place to sit. Where did she look?"},
          {"choices", {{{"label", "A"}, {"text", "pond"}}, {{"label", "B"}, {"text", "bench"}}}}}},
        {"answerKey", "B"}};
    put("commonsenseqa/train_rand_split.jsonl", {stem});
    put("commonsenseqa/dev_rand_split.jsonl", {});
    put("cos_e/cose_train_v1.11.jsonl",
        {{{"id", "a"}, {"explanation", {{"open-ended", "a bench is a dry place"}}}}});
    put("cos_e/cose_dev_v1.11.jsonl", {});
    const auto claim = [](const char* sentence, const char* label) {
      return Json{{"sentence", sentence}, {"explanation", "it is cold"}, {"label", label}};
    };
    put("creak/train.json", {claim("Lapland has more snow than sand in it.", "true"),
                             claim("Lapland has more sand than snow in it.", "false")});
    put("creak/dev.json", {});
    std::ofstream(made("creative_writing/data_100_random_text.txt"))
        << "It rained all day. The cup was empty. Nobody spoke. Wilma waited at the gate until "
           "noon.\n";
  }

  std::string made(const std::string& name) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    return path;
  }
  void put(const std::string& name, const std::vector<Json>& lines) {
    std::ofstream file(made(name));
    for (const Json& line : lines) file << line.dump() << "\n";
  }

  const test::Folder folder_;
};

TEST_F(OwnSentences, are_first_sentences_outside_evaluation_sets) {
  std::set<std::string> texts;
  for (const OpenSentence& sentence : open_sentences(folder_ / ".")) {
    texts.insert(sentence.set + ": " + sentence.text);
    EXPECT_TRUE(sentence.text.starts_with(sentence.subject + " "));
  }
  EXPECT_EQ(texts, (std::set<std::string>{"commonsenseqa: Wanda looked for a dry place to sit.",
                                          "creak: Lapland has more snow than sand in it.",
                                          "gsm8k: Marlo carried seven jars to the shed."}));
}

TEST_F(OwnSentences, are_up_to_three_in_ten_and_named_in_the_record) {
  const auto with_open = task_generator_with_open_texts("write", folder_ / ".");
  int n_open = 0, n = 0;
  for (int i = 0; i < 300; i++) {
    const auto record = with_open->make(Split::Train, 2, i);
    ASSERT_TRUE(record);
    EXPECT_TRUE(check_record(*record, record->completion).correct) << record->id;
    const Json check = Json::parse(record->check);
    for (std::size_t s = 0; s < 4; s++) {
      const bool open = check.at("sources")[s] != "grammar";
      const std::string subject = check.at("subjects")[s];
      EXPECT_EQ(open, subject == "Marlo" || subject == "Wanda" || subject == "Lapland");
      n_open += open, n++;
    }
    EXPECT_EQ(record->prompt.find("Ottilie"), std::string::npos);
    const Json alone = Json::parse(task_generator("write").make(Split::Train, 2, i)->check);
    for (const auto& source : alone.at("sources")) EXPECT_EQ(source, "grammar");
  }
  // The share is below three in ten: the generator redraws if two sentences have the same subject,
  // which is frequent with only three open sentences.
  EXPECT_GT(n_open, n / 10);
  EXPECT_LT(n_open, n * 4 / 10);
}

TEST_F(OwnSentences, a_missing_file_is_refused_by_its_name) {
  std::filesystem::remove(folder_ / "creak/train.json");
  try {
    task_generator_with_open_texts("write", folder_ / ".");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::BadInput);
    EXPECT_NE(std::string(error.what()).find("creak/train.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace engine
