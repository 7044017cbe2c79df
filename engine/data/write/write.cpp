// The write task: creative writing as in Tree of Thoughts (Yao et al. 2023, section 4.2), generated. Four
// sentences are given; the answer is a plan and a passage of four paragraphs that end in them.
//   key      the set of the four sentences
//   forms    "passage"        plan and passage
//            "plan"           only the plan
//            "plan, passage"  the passage for a given plan
//            "plan score", "passage score"  the coherency score of a given plan or passage
//   checker  counts the paragraphs that end in their sentence (0-4) and those whose first sentence names
//            its subject (0-4); both have to be 4
// Sentences of level 1 have four to nine words and no adverbial, so that prompt and completion together
// mostly fit the 256 tokens of the bundled recipes; sentences of level 3 have eight to sixteen words.
// Prompts in the paper's form repeat those of assets/prompts/tot/writing.jsonl word for word. Without a
// folder of open data sets the grammar (paragraphs.h) makes all sentences; check.sources names their sources.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"
#include "engine/data/write/paragraphs.h"
#include "engine/data/write/passage.h"
#include "engine/data/write/words.h"

namespace engine {

namespace {

using Json = nlohmann::json;
using Given = std::vector<GivenSentence>;

constexpr int kParagraphs = 4;

std::string given_text(const Given& given) {
  std::vector<std::string> texts;
  for (const GivenSentence& sentence : given) texts.push_back(sentence.text);
  return joined(texts, " ");
}

std::string content_key(const Given& given) {
  std::vector<std::string> texts;
  for (const GivenSentence& sentence : given) texts.push_back(normalised(sentence.text));
  std::sort(texts.begin(), texts.end());
  return joined(texts, "|");
}

// The question: in the paper's words, or in one of four wordings of a chat.
std::string task_text(Random& rng, const Given& given, bool paper_form) {
  const std::string sentences = given_text(given);
  if (paper_form)
    return "Write a coherent passage of 4 short paragraphs. The end sentence of each paragraph "
           "must "
           "be: " +
           sentences;
  return fill(rng.one_of({"Write four short paragraphs. They must end with these sentences: {0}",
                          "Here are four sentences: {0} Write four paragraphs that end with them.",
                          "Make a passage of 4 paragraphs. Their last sentences are: {0}",
                          "{0} End four short paragraphs with these sentences, in this order."}),
              {sentences});
}

Json check_of(const Given& given, const char* form) {
  Json check;
  check["form"] = form;
  for (const GivenSentence& sentence : given) {
    check["sentences"].push_back(sentence.text);
    check["subjects"].push_back(sentence.subject);
    check["sources"].push_back(sentence.source);
  }
  return check;
}

// --- the plan ------------------------------------------------------------------------------------

struct Plan {
  std::vector<std::string> links;     // [4]
  std::vector<std::string> subjects;  // [4]
  std::string text() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < links.size(); i++) lines.push_back(links[i] + ": " + subjects[i]);
    return joined(lines, "\n");
  }
};

Plan plan_of(Random& rng, const Given& given) {
  Plan plan;
  for (int i = 0; i < kParagraphs; i++) {
    plan.links.push_back(draw_link(rng, i, kParagraphs));
    plan.subjects.push_back(given[i].subject);
  }
  return plan;
}

// True for each line of a plan that names the subject of its paragraph. [4]
std::vector<bool> lines_in_place(std::string_view plan, const std::vector<std::string>& subjects) {
  std::vector<std::string> lines;
  for (const std::string& line : split_text(plan, '\n'))
    if (!trimmed(line).empty() && trimmed(line) != "Plan:") lines.push_back(line);
  std::vector<bool> right(subjects.size(), false);
  if (lines.size() != subjects.size()) return right;
  for (std::size_t i = 0; i < lines.size(); i++) right[i] = names_phrase(lines[i], subjects[i]);
  return right;
}

int plan_score(const std::vector<bool>& right) {
  return std::max(1, 10 - 2 * static_cast<int>(std::count(right.begin(), right.end(), false)));
}

// --- the passage ---------------------------------------------------------------------------------

std::vector<PassageParagraph> passage_of(Random& rng,
                                         int level,
                                         const Given& given,
                                         const Plan& plan) {
  std::vector<PassageParagraph> paragraphs;
  for (int i = 0; i < kParagraphs; i++)
    paragraphs.push_back(
        {plan.links[i], own_sentences(rng, level, given[i], plan.links[i]), given[i].text});
  return paragraphs;
}

// A subject that is not among the given ones.
GivenSentence stranger(Random& rng, const Given& given) {
  while (true) {
    const WriteSubject& subject = rng.pick(write_subjects());
    GivenSentence other = {"", std::string(subject.phrase), std::string(subject.pronoun), "",
                           rng.below(kWriteThemes)};
    const bool is_given = std::any_of(given.begin(), given.end(), [&](const GivenSentence& g) {
      return names_phrase(g.text, other.subject);
    });
    if (!is_given) return other;
  }
}

// Puts one fault into paragraph i: it changes places with another one, has another end or none, or
// another subject.
void spoil(Random& rng, int level, const Given& given, int i, std::vector<PassageParagraph>& all) {
  switch (rng.below(4)) {
    case 0: {
      const int other = (i + rng.between(1, kParagraphs - 1)) % kParagraphs;
      std::swap(all[i], all[other]);
      return;
    }
    case 1:
      all[i].end = grammar_sentence(rng, level, given[i].subject, rng.below(kWriteThemes));
      return;
    case 2:
      all[i].end.clear();
      return;
    default:
      all[i].own = own_sentences(rng, level, stranger(rng, given), all[i].link);
  }
}

// "Paragraph 2", "Paragraphs 2 and 3": those where `right` is false; "" if there is none.
std::string places(const std::string& what, const std::vector<bool>& right) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < right.size(); i++)
    if (!right[i]) numbers.push_back(std::to_string(i + 1));
  if (numbers.empty()) return {};
  return what + (numbers.size() > 1 ? "s " : " ") + enumerated(numbers);
}

std::string passage_reason(Random& rng, const PassageCount& count) {
  if (count.n_ends() == kParagraphs && count.n_subjects() == kParagraphs)
    return std::string(rng.one_of({"Every paragraph ends as it should.", "All four ends are right.",
                                   "It ends right four times.", "No paragraph ends otherwise."}));
  std::vector<std::string> reasons;
  const std::string ends = places("Paragraph", count.ends);
  const std::string subjects = places("Paragraph", count.subjects);
  if (!ends.empty())
    reasons.push_back(ends +
                      std::string(rng.one_of({": another end.", ": not the right end.",
                                              ": the end is wrong.", ": it ends otherwise."})));
  if (!subjects.empty())
    reasons.push_back(subjects + std::string(rng.one_of({": somebody else.", ": another subject.",
                                                         ": the wrong one.", ": of another."})));
  return joined(reasons, " ");
}

std::string plan_reason(Random& rng, const std::vector<bool>& right) {
  const std::string wrong = places("Line", right);
  if (wrong.empty())
    return std::string(rng.one_of({"Every line fits.", "All four lines are right.",
                                   "It leads to each end.", "Each line has its subject."}));
  return wrong + std::string(rng.one_of({": somebody else.", ": another subject.",
                                         ": the wrong one.", ": not of the end."}));
}

// --- records -------------------------------------------------------------------------------------

Record whole_record(Random& rng, int level, const Given& given) {
  Record record;
  const bool paper_form = rng.chance(50);
  const std::string task = task_text(rng, given, paper_form);
  const Plan plan = plan_of(rng, given);
  const std::string text = "Plan:\n" + plan.text() + "\n\nPassage:\n" +
                           passage_text(passage_of(rng, level, given, plan));
  record.check = check_of(given, "passage").dump();
  record.answer = "4 end sentences";
  if (paper_form) {
    record.prompt = task + "\n";
    record.completion = text + "\n";
  } else {
    set_chat(record, task, text);
  }
  return record;
}

Record plan_record(Random& rng, const Given& given) {
  Record record;
  const bool paper_form = rng.chance(50);
  const std::string task = task_text(rng, given, paper_form);
  const std::string text = plan_of(rng, given).text();
  record.check = check_of(given, "plan").dump();
  record.answer = "4 lines";
  if (paper_form) {
    record.prompt = task + "\nMake a plan first, one line for each paragraph.\nPlan:\n";
    record.completion = text + "\n";
  } else {
    set_chat(record,
             task + std::string(rng.one_of({" Make a plan first.", " Say only the plan.",
                                            " What is your plan?", " Plan it in four lines."})),
             text);
  }
  return record;
}

Record passage_record(Random& rng, int level, const Given& given) {
  Record record;
  const bool paper_form = rng.chance(50);
  const std::string task = task_text(rng, given, paper_form);
  const Plan plan = plan_of(rng, given);
  const std::string text = passage_text(passage_of(rng, level, given, plan));
  record.check = check_of(given, "plan, passage").dump();
  record.answer = "4 end sentences";
  if (paper_form) {
    record.prompt = task + "\nPlan:\n" + plan.text() + "\n\nPassage:\n";
    record.completion = text + "\n";
  } else {
    set_chat(record,
             task + "\nPlan:\n" + plan.text() + "\n" +
                 std::string(rng.one_of({"Write the passage.", "Follow the plan.", "Now write it.",
                                         "Write it as planned."})),
             text);
  }
  return record;
}

// Sets the question for a score, in the paper's form or as a chat, and the score with its reason.
void set_score(Random& rng,
               Record& record,
               const std::string& shown,
               bool paper_form,
               std::string_view question,
               const std::string& score,
               const std::string& reason) {
  record.answer = score;
  if (paper_form) {
    record.prompt = shown + "\n\n" + std::string(question) + "\nThus the coherency score is";
    record.completion = " " + score + ". " + reason + "\n";
    return;
  }
  set_chat(
      record,
      shown + "\n\n" +
          std::string(rng.one_of({"How good is this, from 1 to 10?", "Give it a score.",
                                  "Rate it from 1 to 10.", "What is it worth, from 1 to 10?"})),
      "Thus the coherency score is " + score + ". " + reason);
}

Record plan_score_record(Random& rng, const Given& given) {
  Record record;
  const bool paper_form = rng.chance(50);
  const std::string task = task_text(rng, given, paper_form);
  Plan plan = plan_of(rng, given);
  if (rng.chance(60)) {
    const int i = rng.below(kParagraphs);
    if (rng.chance(50)) {
      std::swap(plan.subjects[i],
                plan.subjects[(i + rng.between(1, kParagraphs - 1)) % kParagraphs]);
    } else {
      plan.subjects[i] = stranger(rng, given).subject;
    }
  }
  const Json check = check_of(given, "plan score");
  record.check = check.dump();
  const auto right = lines_in_place(plan.text(), check.at("subjects"));
  set_score(rng, record, task + "\nPlan:\n" + plan.text(), paper_form,
            "Does this plan lead to the four end sentences? Say so from 1 to 10.",
            std::to_string(plan_score(right)), plan_reason(rng, right));
  return record;
}

Record passage_score_record(Random& rng, int level, const Given& given) {
  Record record;
  const bool paper_form = rng.chance(50);
  const std::string task = task_text(rng, given, paper_form);
  auto paragraphs = passage_of(rng, level, given, plan_of(rng, given));
  if (rng.chance(60)) {
    const int first = rng.below(kParagraphs);
    spoil(rng, level, given, first, paragraphs);
    if (rng.chance(30))
      spoil(rng, level, given, (first + rng.between(1, kParagraphs - 1)) % kParagraphs, paragraphs);
  }
  const std::string passage = passage_text(paragraphs);
  const Json check = check_of(given, "passage score");
  record.check = check.dump();
  const PassageCount count = count_passage(passage, check.at("sentences"), check.at("subjects"));
  set_score(rng, record, task + "\nPassage:\n" + passage, paper_form,
            "Does each paragraph end as it should? Say so from 1 to 10.",
            std::to_string(coherency_score(count)), passage_reason(rng, count));
  return record;
}

// --- reading completions -------------------------------------------------------------------------

CheckResult check_passage(std::string_view text,
                          const std::vector<std::string>& sentences,
                          const std::vector<std::string>& subjects) {
  const PassageCount count = count_passage(text, sentences, subjects);
  const std::string n = std::to_string(sentences.size());
  if (count.n_paragraphs != static_cast<int>(sentences.size()))
    return {false, "found " + std::to_string(count.n_paragraphs) + " paragraphs, expected " + n};
  const auto n_right = static_cast<int>(sentences.size());
  if (count.n_ends() == n_right && count.n_subjects() == n_right) return {true, {}};
  return {false, std::to_string(count.n_ends()) + " of " + n +
                     " paragraphs end in their sentence, " + std::to_string(count.n_subjects()) +
                     " name its subject"};
}

CheckResult check_plan(std::string_view text, const std::vector<std::string>& subjects) {
  const auto right = lines_in_place(text, subjects);
  const auto n_right = std::count(right.begin(), right.end(), true);
  if (n_right == static_cast<std::ptrdiff_t>(subjects.size())) return {true, {}};
  return {false, std::to_string(n_right) + " of " + std::to_string(subjects.size()) +
                     " lines name the subject of their end sentence"};
}

// The part of a prompt after `before`, up to an empty line.
std::string shown_in(const Record& record, std::string_view before) {
  const auto at = record.prompt.rfind(before);
  if (at == std::string::npos)
    throw Error(ErrorCode::BadInput, record.id + ": prompt: found nothing after '" +
                                         std::string(trimmed(before)) +
                                         "', expected a plan or a passage");
  const std::string rest = record.prompt.substr(at + before.size());
  return rest.substr(0, rest.find("\n\n"));
}

CheckResult check_rating(std::string_view text, int expected) {
  const auto score = read_score(text);
  if (!score) return {false, "found no score"};
  if (*score == expected) return {true, {}};
  return {false, "the score is not " + std::to_string(expected)};
}

class WriteTask final : public TaskGenerator {
 public:
  explicit WriteTask(std::vector<OpenSentence> open) : open_(std::move(open)) {}

  std::string_view name() const override { return "write"; }

  CheckResult check(const Record& record, std::string_view completion) const override {
    try {
      const Json check = Json::parse(record.check);
      const std::string form = check.at("form");
      const auto sentences = check.at("sentences").get<std::vector<std::string>>();
      const auto subjects = check.at("subjects").get<std::vector<std::string>>();
      if (sentences.empty() || sentences.size() != subjects.size())
        throw Error(
            ErrorCode::BadInput,
            record.id +
                ": check.subjects: expected one for each sentence, and at least one sentence");
      const std::string_view text = completion_body(completion);
      if (form == "passage" || form == "plan, passage")
        return check_passage(text, sentences, subjects);
      if (form == "plan") return check_plan(text, subjects);
      if (form == "plan score")
        return check_rating(text,
                            plan_score(lines_in_place(shown_in(record, "\nPlan:\n"), subjects)));
      if (form == "passage score")
        return check_rating(text, coherency_score(count_passage(shown_in(record, "\nPassage:\n"),
                                                                sentences, subjects)));
      throw Error(ErrorCode::BadInput, record.id + ": check.form: found '" + form + "'");
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    const auto given = draw_given_sentences(rng, level, kParagraphs, open_);
    if (!given || split_of_key(content_key(*given)) != split) return std::nullopt;
    switch (rng.weighted({50, 12, 18, 8, 12})) {
      case 0:
        return whole_record(rng, level, *given);
      case 1:
        return plan_record(rng, *given);
      case 2:
        return passage_record(rng, level, *given);
      case 3:
        return plan_score_record(rng, *given);
      default:
        return passage_score_record(rng, level, *given);
    }
  }

 private:
  std::vector<OpenSentence> open_;  // empty: the grammar makes all sentences
};

}  // namespace

std::unique_ptr<TaskGenerator> make_write_task(const std::string& data_dir) {
  return std::make_unique<WriteTask>(data_dir.empty() ? std::vector<OpenSentence>()
                                                      : open_sentences(data_dir));
}

}  // namespace engine
