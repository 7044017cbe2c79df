// The view of the panel Timeline: its clock, its range, and the lane that was clicked last. Keys of the window change it too.
#pragma once

#include <vector>

#include "ui/prepare/time/lane_order.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/time/time_range.h"
#include "ui/shell/panel_state.h"

namespace ui {

/// The state of the panel Timeline.
struct TimelineView : PanelState {
  TimeRange range;  // visible and measured range, on `clock`
  ClockKind clock = ClockKind::Compute;
  std::vector<LaneKey> natural_lanes;  // the existing lanes in their default order, as drawn last
  LaneKind lane = LaneKind::Target;    // lane of the slice clicked last: . and , move along it
  LaneKey lane_key;                    // lane of the slice or label clicked last: U and J move it
  float rows_end = 0;                  // lower end of the lanes, px, as drawn last
  float range_words_top = 0;           // upper end of the statistics of the measured range, px
  void document_changed() override { range = {}; }
};

}  // namespace ui
