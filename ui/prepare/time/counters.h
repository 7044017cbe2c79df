// Counters per step, drawn below the lanes of the timeline: rows, tokens, cache length, n-grams in the pool, the size chosen. Minimum and maximum of any
// range take a few lookups, so a million steps are drawn at the cost of their pixels.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "ui/prepare/time/lane_kind.h"

namespace engine {
struct RunRecord;
}

namespace ui {

/// A list of values with the minima and maxima of every 16, 256, 4,096, ... of them.
class Extremes {
 public:
  /// Appends a value.
  void push(float value);
  /// Returns the number of values.
  std::size_t size() const { return values_.size(); }
  /// Returns the value at an index.
  float at(std::size_t i) const { return values_[i]; }
  /// Returns the minimum and maximum of [first, last), which contains at least one value.
  std::pair<float, float> of(std::size_t first, std::size_t last) const;
  /// Returns the maximum of all values.
  float highest() const { return highest_; }

 private:
  static constexpr std::size_t kShift = 4, kFan = std::size_t{1} << kShift;
  struct Range {
    float low, high;
  };
  std::vector<float> values_;
  std::vector<std::vector<Range>> levels_;  // [level][i] of kFan^(level + 1) values
  float highest_ = 0;
};

/// The counters of a run.
struct RunCounters {
  Extremes rows, tokens, cache, pool, choice;
  Extremes missed;  // 1: the step missed the prediction of its choice by much; 0: not

  /// Returns the values of a counter.
  const Extremes& of(LaneKind counter) const;
};

/// Appends the steps that were completed since the last call.
void extend(RunCounters& counters, const engine::RunRecord& run);

/// Returns the quantity of a counter: "tokens committed by the step".
const char* counter_words(LaneKind counter);

}  // namespace ui
