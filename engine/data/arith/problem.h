// A word problem as a chain of steps, each with its sentence, calculations and rationale lines.
#pragma once

#include <string>
#include <vector>

#include "engine/data/random.h"

namespace engine {

/// One calculation of a rationale: expression = result.
struct Calculation {
  std::string expression;  ///< "11+33", evaluated from left to right, without spaces
  int result = 0;
};

/// One step of a problem.
struct ArithStep {
  std::string sentence;                   ///< the step in the problem's text; "" for a final sum
  std::vector<Calculation> calculations;  ///< one or two; the last gives the new value
  std::vector<std::string> patterns;      ///< rationale line of each calculation; {0} is its mark
  std::string after;                      ///< "after getting 33 more", for sub-questions
  std::string subject;                    ///< the person who has the value
  char turned_op = 0;                     ///< the opposite operation, for a wrong option
};

/// A problem with its solution.
struct ArithProblem {
  std::string text;     ///< sentences and the question
  std::string thing;    ///< "stickers"
  std::string opening;  ///< a rationale line that repeats the start value; may be empty
  std::vector<ArithStep> steps;
  int start = 0;    ///< value before the first step
  int answer = 0;   ///< value after the last step
  std::string key;  ///< content key: the operations and their numbers
};

/// Draws a problem.
/// @param level  1: 1-2 steps, values up to 99; 2: 2-4 steps, up to 999; 3: 3-6 steps, up to 999
/// @return  false if the draw fails: no step fits the values of the level
bool draw_arith_problem(Random& rng, int level, ArithProblem& problem);

/// The calculator mark of GSM8K: "11+33=<<11+33=44>>44".
std::string calculation_mark(const Calculation& calculation);

/// All rationale lines of a step, joined by `separator`.
std::string step_lines(const ArithStep& step, std::string_view separator);

/// The opening and the lines of all steps, joined by `separator`.
std::string arith_rationale(const ArithProblem& problem, std::string_view separator);

}  // namespace engine
