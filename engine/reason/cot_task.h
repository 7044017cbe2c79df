// Questions with a checkable answer, generated or real, as chain of thought asks them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/record.h"
#include "engine/reason/questions.h"

namespace engine {

struct Question {
  Record record;
  /// Texts that can be an answer, for the probe: " yes", " no"; " (A)" .. and the options' words.
  std::vector<std::string> answers;
};

/// kb arith (AQuA's form) commonsenseqa strategyqa aqua: the tasks FastCoT is measured on and the
/// generated ones of the same shape.
std::vector<std::string> cot_task_names();
/// Questions start, start + 1, .. of a task; of arith those in AQuA's form.
/// @param data_dir  the folder of the open sets; not read for a generated task
/// @throws Error(Usage)  for an unknown task, naming those there are
/// @throws Error(Resources, BadInput)  for a set that cannot be read
std::vector<Question> cot_questions(const std::string& task,
                                    const QuestionRange& range,
                                    const std::string& data_dir);
/// The same from a file of records (`decoscope data generate`).
std::vector<Question> cot_questions_of(std::span<const Record> records);

/// n of the questions drawn at random, each as likely as any other, in their order; all of them
/// where there are no more.
std::vector<Question> sample_of(std::vector<Question> questions, int n, std::uint64_t seed);

/// Whether what was written behind the trigger is the record's answer: what stands there up to the
/// first full stop, which a model may have run over.
bool answers_rightly(const Record& record, const std::string& written);

}  // namespace engine
