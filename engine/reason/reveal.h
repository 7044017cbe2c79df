// The reveal curve: right answers by the number of steps of a rationale, FastCoT beside Truncated-CoT.
//   paper    Zhang et al. 2023 (arXiv:2311.08263), figure 5
//   differs  each limit is a separate run; the paper answers after every iteration of one run
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/reason/cot.h"

namespace engine {

/// The answers with one method at one limit.
struct RevealRun {
  int n_correct = 0;
  std::int64_t n_steps = 0;        // target steps of rationales and answers
  std::int64_t n_rows = 0;         // rows of the rationales' steps
  std::int64_t n_approximate = 0;  // approximate tokens in the prompts of answers
  double seconds = 0;              // compute time
};

/// Both methods at one limit.
struct RevealPoint {
  int limit = 0;        // most steps of a rationale; 0: whole rationales
  RevealRun truncated;  // plain decoding, at most `limit` tokens
  RevealRun fastcot;    // at most `limit` steps; its window replaces the rest
};

/// Answers all questions at each limit, then with whole rationales. Both methods see the same worked examples.
/// @param settings  of decoder fastcot; stop, bound and the length of rationales are set by the curve, which are
///                  never longer than settings.max_tokens
/// @param limits    numbers of steps from 1 to settings.max_tokens
/// @param on_point  called after each point; false ends the curve. May be empty
/// @return  the points in the order of the limits; fewer if it was stopped
/// @throws  as answer()
std::vector<RevealPoint> reveal_curve(Scheduler& scheduler,
                                      const Model& model,
                                      std::span<const Question> questions,
                                      CotSettings settings,
                                      std::span<const int> limits,
                                      const std::function<bool(const RevealPoint&)>& on_point = {},
                                      const SchedulerWatch& watch = {});

}  // namespace engine
