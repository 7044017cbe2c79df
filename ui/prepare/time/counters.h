// What is counted at every step, drawn below the lanes of the time line: rows, tokens, the cache's
// length, n-grams in the pool. Lowest and highest of any range cost a few look-ups, so a million
// steps are drawn as what the pixels show of them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/gantt.h"

namespace ui {

/// Values in order, with the lowest and highest of every 16, 256, 4,096 and so on of them.
class Extremes {
 public:
  void push(float value);
  std::size_t size() const { return values_.size(); }
  float at(std::size_t i) const { return values_[i]; }
  /// Lowest and highest of [first, last), which holds at least one value.
  std::pair<float, float> of(std::size_t first, std::size_t last) const;
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

struct RunCounters {
  Extremes rows, tokens, cache, pool;

  const Extremes& of(LaneKind counter) const;
};

/// Takes over the steps that have become complete since the last call.
void extend(RunCounters& counters, const engine::RunRecord& run);

/// "rows a step": what a counter counts.
const char* counter_words(LaneKind counter);

}  // namespace ui
