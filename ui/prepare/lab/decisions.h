// The sizes that a decoder chose step by step (n=auto and the like), with the expected and the measured tokens and times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ui/prepare/time/curves.h"

namespace engine {
struct RunRecord;
struct StepRecord;
}  // namespace engine

namespace ui {

/// Curves over the steps whose size was chosen.
struct Decisions {
  std::vector<Curve> tokens;  // expected, committed
  std::vector<Curve> ms;      // expected, measured, expected of a plain step
  std::vector<Curve> size;    // chosen size
};
/// Returns the curves; without a value if no size was chosen.
Decisions decisions_of(const engine::RunRecord& run);

/// The factors, up or down, beyond which a step's tokens and time missed the decoder's prediction.
constexpr double kMissedTokens = 2, kMissedTime = 1.5;
/// Which results of a step missed the prediction by more than these factors.
struct Missed {
  bool tokens = false, time = false;
  bool any() const { return tokens || time; }
};
/// Returns the results that missed the prediction; none if no size was chosen.
Missed missed_by(const engine::StepRecord& step);
/// Returns labels of a step's choice, the longest first: "4: 2.1 tokens, 5.30 ms; measured 2, 5.60 ms". They begin with the size, after "! " if the
/// step missed its prediction. Empty if no size was chosen.
std::vector<std::string> choice_labels(const engine::StepRecord& step);
/// Returns the choices of the steps [first, last) in words: the size, the expected and the measured tokens and time; of several steps their means.
/// The last line names what missed the prediction.
std::string choice_words(const engine::RunRecord& run, std::size_t first, std::size_t last);

}  // namespace ui
