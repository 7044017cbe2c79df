#include "ui/prepare/time/counters.h"

#include <algorithm>

#include "engine/base/types.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/lab/decisions.h"

namespace ui {

void Extremes::push(float value) {
  values_.push_back(value);
  highest_ = values_.size() == 1 ? value : std::max(highest_, value);
  // The value extends the last range of every level. A new level begins when the highest one would get a second range.
  std::size_t i = values_.size() - 1;
  for (std::size_t level = 0; level < levels_.size() || i >= kFan; ++level) {
    if (level == levels_.size()) {
      const auto [low, high] = of(0, values_.size() - 1);
      levels_.push_back({{low, high}});
    }
    i >>= kShift;
    std::vector<Range>& ranges = levels_[level];
    if (i == ranges.size()) ranges.push_back({value, value});
    ranges[i] = {std::min(ranges[i].low, value), std::max(ranges[i].high, value)};
  }
}

std::pair<float, float> Extremes::of(std::size_t first, std::size_t last) const {
  engine::ensure(first < last && last <= values_.size(), "a range of counted steps is empty");
  float low = values_[first], high = low;
  while (first < last) {
    // Takes the widest stored range that begins at `first` and ends before or at `last`.
    std::size_t level = 0, wide = 1;
    while (level < levels_.size() && first % (wide * kFan) == 0 && first + wide * kFan <= last) {
      wide *= kFan;
      ++level;
    }
    const Range range =
        level == 0 ? Range{values_[first], values_[first]} : levels_[level - 1][first / wide];
    low = std::min(low, range.low);
    high = std::max(high, range.high);
    first += wide;
  }
  return {low, high};
}

const Extremes& RunCounters::of(LaneKind counter) const {
  return counter == LaneKind::Rows     ? rows
         : counter == LaneKind::Tokens ? tokens
         : counter == LaneKind::Cache  ? cache
         : counter == LaneKind::Choice ? choice
                                       : pool;
}

void extend(RunCounters& counters, const engine::RunRecord& run) {
  while (counters.rows.size() < run.steps.size()) {
    const std::size_t i = counters.rows.size();
    const engine::StepHead step = run.steps.head(i);
    if (!step.complete) break;
    counters.rows.push(static_cast<float>(std::max(step.begun.n_rows, step.n_rows)));
    counters.tokens.push(static_cast<float>(step.n_tokens));
    counters.cache.push(static_cast<float>(step.ended.kv_len));
    counters.choice.push(static_cast<float>(std::max(0, step.chosen - 1)));
    counters.missed.push(step.chosen > 0 && missed_by(run.steps[i]).any() ? 1 : 0);
    // Only steps that change the pool report its size.
    const float before = i > 0 ? counters.pool.at(i - 1) : 0;
    counters.pool.push(step.has_pool ? static_cast<float>(run.steps[i].pool->n_ngrams) : before);
  }
}

const char* counter_words(LaneKind counter) {
  return counter == LaneKind::Rows     ? "rows computed by the target in the step"
         : counter == LaneKind::Tokens ? "tokens committed by the step"
         : counter == LaneKind::Cache  ? "positions in the KV cache after the step"
         : counter == LaneKind::Choice ? "the size that the decoder chose for the step; 0: no "
                                         "guesses, plain decoding, or none was chosen"
                                       : "n-grams in the pool after the step";
}

}  // namespace ui
