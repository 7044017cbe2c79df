// A word problem as a chain of steps: sentences, calculations, rationale lines, sub-questions.
#pragma once

#include <string>
#include <vector>

#include "engine/data/random.h"

namespace engine {

/// One calculation of a rationale: expression = result.
struct Calculation {
  std::string expression;  ///< "11+33", left to right, without spaces
  int result = 0;
};

struct ArithStep {
  std::string sentence;                   ///< what the problem says
  std::vector<Calculation> calculations;  ///< one or two; the last gives the new value
  std::vector<std::string> patterns;      ///< rationale line of each calculation, {0} its mark
  std::string after;                      ///< "after getting 33 more", for sub-questions
  std::string subject;                    ///< whose value it is
  char turned_op = 0;                     ///< the operation turned round, for a wrong option
};

struct ArithProblem {
  std::string text;     ///< sentences and the question
  std::string thing;    ///< "stickers"
  std::string opening;  ///< a rationale line that restates the start; may be empty
  std::vector<ArithStep> steps;
  int start = 0;
  int answer = 0;
  std::string key;  ///< the operations and numbers
};

/// @param level  1..3: 1-2, 2-4 or 3-6 steps, values up to 99 or 999
/// @return  a problem whose values all keep to the level; nothing if the draw leads nowhere
bool draw_arith_problem(Random& rng, int level, ArithProblem& problem);

/// "11+33=<<11+33=44>>44".
std::string calculation_mark(const Calculation& calculation);

/// All rationale lines of a step, joined by `separator`.
std::string step_lines(const ArithStep& step, std::string_view separator);

/// The opening and the lines of all steps, joined by `separator`.
std::string arith_rationale(const ArithProblem& problem, std::string_view separator);

}  // namespace engine
