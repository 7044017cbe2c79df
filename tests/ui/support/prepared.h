// Computes timelines and run times of artificial events.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/run_times.h"

inline engine::Timeline timeline_of(const std::vector<engine::Event>& events) {
  engine::Timeline timeline;
  for (const engine::Event& event : events) timeline.apply(event);
  EXPECT_EQ(timeline.n_inconsistent(), 0)
      << (timeline.inconsistencies().empty() ? "" : timeline.inconsistencies()[0]);
  return timeline;
}

inline ui::RunTimes times_of(const engine::RunRecord& run) {
  ui::RunTimes times;
  extend(times, run);
  return times;
}
