// A lesson: cards about a recording that explain, ask for a prediction and reveal the answer. It is a file NAME.json with a recording
// beside it; docs/lessons.md describes the format. The answers and every figure in the texts are queries of the recording.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "engine/lesson/lesson_query.h"

namespace engine {

/// The part of the recording that the window shows beside a card.
struct LessonView {
  std::vector<std::string> panels;  // ids of one or two panels (lesson_panels())
  RunId run = 0;
  StepId step = -1;     // -1: the end of the run
  bool before = false;  // true: the moment before the step, so the panels do not show its result
};

/// How a prediction is entered.
enum class AskFor { Number, Choice, Which };

/// One of several answers.
struct LessonChoice {
  std::string text;
  double from = 0, to = 0;  // the answer is right for a number in [from, to); of yes or no: 1 or 0
};

/// A question.
struct LessonQuestion {
  std::string text;
  AskFor ask = AskFor::Number;
  LessonQuery query;
  double tolerance = 0;               // a number is right up to this distance
  std::vector<LessonChoice> choices;  // of Choice
};

/// A card. A card without a question only explains.
struct LessonCard {
  std::string title;
  std::string text;  // paragraphs are separated by an empty line; each value replaces its {name}
  LessonView view;
  std::map<std::string, LessonQuery> values;
  std::optional<LessonQuestion> question;
  std::string reveal;      // the explanation after the answer; the answer replaces {answer}
  LessonView reveal_view;  // what the window shows then
  RunId try_run = 0;       // the run whose settings the card offers to repeat; 0: none
};

/// A lesson as its file describes it.
struct Lesson {
  std::string path;  // of the file
  std::string title;
  std::string summary;  // one sentence for the list of lessons
  int minutes = 0;
  std::string recording;  // path of the recording
  std::vector<LessonCard> cards;
};

/// A card with its values and its answer filled in from the recording.
struct SolvedCard {
  std::string text, question, reveal;
  LessonAnswer answer;               // of a card with a question
  std::vector<std::string> options;  // what can be chosen; empty for a number
  std::vector<std::size_t> right;    // indices of the right options
};

/// The ids of the panels that a card can show.
std::span<const char* const> lesson_panels();

/// Returns true if a file is JSON with cards, so that it is meant to be a lesson.
bool looks_like_lesson(const std::string& path);

/// Reads and checks the file of a lesson, without its recording.
/// @throws Error(BadInput)  naming file, card and field: not JSON, an unknown or missing field, a value out of range, an unknown
///                          query or panel, a {name} without a value
Lesson read_lesson(const std::string& path);

/// Computes all answers and texts of a lesson.
/// @param recording  all events of its recording
/// @return  [cards]
/// @throws Error(BadInput)  naming file, card and reason: the recording has no answer to a query, no choice is right, or a
///                          run or step that a card shows is missing
std::vector<SolvedCard> solve_lesson(const Lesson& lesson, const Timeline& recording);

/// Reads the recording of a lesson with all its payload.
/// @throws Error(BadInput, Resources)  it cannot be read completely
Timeline load_lesson_recording(const Lesson& lesson);

/// Returns true if a predicted number is right.
bool is_right(const LessonQuestion& question, const LessonAnswer& answer, double predicted);

}  // namespace engine
