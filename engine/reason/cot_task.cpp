#include "engine/reason/cot_task.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <utility>

#include "engine/data/random.h"
#include "engine/data/readers.h"
#include "engine/data/text.h"
#include "engine/reason/cot_prompts.h"

namespace engine {
namespace {

bool asks_for_letter_or_word(const Record& record) {
  const std::string form = form_of(record);
  return form == "letter" || form == "aqua" || form.starts_with("choice") ||
         form.starts_with("yes/no");
}

/// The words of the options, from "(A) feathers" or "feathers (A)".
std::vector<std::string> option_words(const std::string& prompt) {
  const std::size_t begin = prompt.find("Answer Choices:");
  std::vector<std::string> words;
  if (begin == std::string::npos) return words;
  std::string word;
  const auto take = [&] {
    const std::string one(trimmed(word));
    if (!one.empty()) words.push_back(" " + one);
    word.clear();
  };
  for (std::size_t i = begin + 15; i < prompt.size() && prompt[i] != '\n'; i++) {
    const bool letter = prompt[i] == '(' && i + 2 < prompt.size() && prompt[i + 2] == ')' &&
                        std::isupper(static_cast<unsigned char>(prompt[i + 1])) != 0;
    if (letter || prompt[i] == ',') {
      take();
      if (letter) i += 2;
      continue;
    }
    if (prompt.compare(i, 10, " ASSISTANT") == 0) break;
    word += prompt[i];
  }
  take();
  return words;
}

Question question_of(Record record) {
  Question question;
  if (record.answer == "yes" || record.answer == "no") {
    question.answers = {" yes", " no"};
  } else {
    for (const char letter : {'A', 'B', 'C', 'D', 'E'})
      question.answers.push_back(std::string(" (") + letter + ")");
    for (std::string& word : option_words(record.prompt))
      question.answers.push_back(std::move(word));
  }
  question.record = std::move(record);
  return question;
}

}  // namespace

std::vector<std::string> cot_task_names() {
  return {"kb", "arith", "commonsenseqa", "strategyqa", "aqua"};
}

std::vector<Question> cot_questions(const std::string& task,
                                    const QuestionRange& range,
                                    const std::string& data_dir) {
  check_task(task, cot_task_names());
  std::vector<Question> questions;
  for (Record& record : matching_records(task, range, data_dir, asks_for_letter_or_word))
    questions.push_back(question_of(std::move(record)));
  return questions;
}

std::vector<Question> cot_questions_of(std::span<const Record> records) {
  std::vector<Question> questions;
  for (const Record& record : records)
    if (asks_for_letter_or_word(record)) questions.push_back(question_of(record));
  if (questions.empty() && !records.empty())
    throw Error(
        ErrorCode::BadInput,
        "data: found no question with options or the answer yes or no; chain of thought needs "
        "records of kb, arith (in AQuA's form), commonsenseqa, strategyqa or aqua");
  return questions;
}

std::vector<Question> sample_of(std::vector<Question> questions, int n, std::uint64_t seed) {
  if (n >= std::ssize(questions)) return questions;
  std::vector<std::size_t> drawn(questions.size());
  std::iota(drawn.begin(), drawn.end(), std::size_t{0});
  Random(seed).shuffle(drawn);
  drawn.resize(static_cast<std::size_t>(n));
  std::ranges::sort(drawn);
  std::vector<Question> sample;
  for (const std::size_t i : drawn) sample.push_back(std::move(questions[i]));
  return sample;
}

bool is_right_answer(const Record& record, const std::string& written) {
  // The checkers read the last answer in a text, so this keeps only the first sentence. A decimal point
  // does not end a sentence.
  std::size_t end = written.find('.');
  const auto in_number = [&](std::size_t point) {
    return point != std::string::npos && point + 1 < written.size() &&
           std::isdigit(static_cast<unsigned char>(written[point + 1]));
  };
  while (in_number(end)) end = written.find('.', end + 1);
  return check_record(record, kTrigger + written.substr(0, end)).correct;
}

}  // namespace engine
