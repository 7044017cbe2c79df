// The sizes that a decoder chose step by step (n=auto and the like), with the expected and the measured tokens and times.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ui/prepare/time/curves.h"

namespace engine {
struct RunRecord;
}

namespace ui {

/// Curves over the steps whose size was chosen.
struct Decisions {
  std::vector<Curve> tokens;  // expected, committed
  std::vector<Curve> ms;      // expected, measured, expected of a plain step
  std::vector<Curve> size;    // chosen size
};
/// Returns the curves; without a value if no size was chosen.
Decisions decisions_of(const engine::RunRecord& run);
/// Returns the choices of the steps [first, last) in words: the size, the expected and the measured tokens and time; of several steps their means.
std::string choice_words(const engine::RunRecord& run, std::size_t first, std::size_t last);

}  // namespace ui
