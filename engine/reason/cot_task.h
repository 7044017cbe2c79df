// The questions of chain of thought: questions with options or with the answer yes or no, generated or from
// an open data set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/record.h"
#include "engine/reason/questions.h"

namespace engine {

/// A question.
struct Question {
  Record record;
  /// The texts that the probe recognises as answers: " yes", " no"; " (A)", .. and the options' words.
  std::vector<std::string> answers;
};

/// The tasks: kb, arith (in AQuA's form), commonsenseqa, strategyqa, aqua. These are the data sets of the
/// FastCoT paper and the generated tasks of the same form.
std::vector<std::string> cot_task_names();
/// The questions of a task in a range; for arith only those in AQuA's form.
/// @param data_dir  the folder of the open data sets; not used for a generated task
/// @throws Error(Usage)  for an unknown task, with the list of tasks
/// @throws Error(Resources, BadInput)  for a data set that cannot be read
std::vector<Question> cot_questions(const std::string& task,
                                    const QuestionRange& range,
                                    const std::string& data_dir);
/// The questions among records of a file (`decoscope data generate`).
/// @throws Error(BadInput)  if there are records, but no question among them
std::vector<Question> cot_questions_of(std::span<const Record> records);

/// A uniform random sample of n questions in their original order; all questions if there are at most n.
std::vector<Question> sample_of(std::vector<Question> questions, int n, std::uint64_t seed);

/// True if the text after the trigger is the record's answer. Ignores everything after its first full stop.
bool is_right_answer(const Record& record, const std::string& written);

}  // namespace engine
