// Questions about a recording. A lesson names a query, and the recording gives the answer, so a lesson cannot contradict it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

class Timeline;

/// The kind of an answer.
enum class AnswerKind : std::uint8_t {
  Number,
  YesNo,
  Which,  ///< one or more of several options
  Text,   ///< words from the recording for the text of a card; a question cannot ask for them
};

/// A query with its arguments. Arguments that the query does not have stay at their defaults.
struct LessonQuery {
  std::string name;    // of a LessonQueryInfo
  RunId run = 0;       // number of the run in the recording, from 1
  RunId than = 0;      // the run that it is compared with
  StepId step = -1;    // of `run`, from 0
  int token = 0;       // number of the proposal in the step, from 1
  std::string option;  // name of an option of the run's decoder
};

/// A query that a lesson can name.
struct LessonQueryInfo {
  const char* name;  // "accepted"
  AnswerKind kind;
  bool needs_run, needs_than, needs_step, needs_token, needs_option;
  const char* unit;  // of a number: "%", "ms"; empty: a count or a ratio
  const char* does;  // the answer, as a phrase: "proposals that the step accepted"
};
/// Returns all queries.
std::span<const LessonQueryInfo> lesson_queries();
/// Returns the query with this name, or nullptr.
const LessonQueryInfo* lesson_query(const std::string& name);

/// The answer of a query.
struct LessonAnswer {
  AnswerKind kind = AnswerKind::Number;
  double number = 0;                 // of a number; 1 or 0 of yes or no
  std::string text;                  // in words: "3", "41 %", "yes"; the right options, joined
  std::vector<std::string> options;  // of Which: what can be chosen
  std::vector<std::size_t> right;    // of Which: indices of the right options, ascending
};

/// Computes the answer from a recording.
/// @throws Error(BadInput)  the reason why the recording has no answer: no such run, step or token, payload that was not
///                          recorded, or nothing of that kind
LessonAnswer answer_of(const LessonQuery& query, const Timeline& recording);

/// Returns a number in words: at most two decimals, no trailing zeros; with its unit.
std::string number_words(double number, const char* unit = "");

}  // namespace engine
