// The view of the panel Timeline: its clock, its range, and the lane that was clicked last. Keys of the window change it too.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/event/event.h"
#include "ui/prepare/time/lane_order.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/time/time_range.h"
#include "ui/shell/panel_state.h"

namespace ui {

/// The runs that a measured range belongs to: one run, or on the screen Compare a race or the runs chosen in Runs. All unset: none.
struct RangeOwner {
  engine::RunId run = 0;
  std::uint32_t race = 0;
  std::vector<engine::RunId> compared = {};
  auto operator<=>(const RangeOwner&) const = default;
};

/// The state of the panel Timeline.
struct TimelineView : PanelState {
  TimeRange range;  // visible and measured range, on `clock`
  ClockKind clock = ClockKind::Compute;
  std::vector<LaneKey> natural_lanes;  // the existing lanes in their default order, as drawn last
  LaneKind lane = LaneKind::Target;    // lane of the slice clicked last: . and , move along it
  LaneKey lane_key;                    // lane of the slice or label clicked last: U and J move it
  float rows_end = 0;                  // lower end of the lanes, px, as drawn last
  float range_words_top = 0;           // upper end of the statistics of the measured range, px
  void document_changed() override {
    forget_ranges();
    owner_ = {};
  }
  /// Chooses a clock. Ranges are on the clock, so all are removed.
  void choose_clock(ClockKind chosen) {
    clock = chosen;
    forget_ranges();
  }
  /// Keeps the measured range for the runs that were shown, and restores the one of the runs that are shown now.
  void show_range_of(const RangeOwner& owner) {
    if (owner == owner_) return;
    const bool had_owner = owner_ != RangeOwner{};
    if (had_owner) measured_[owner_] = {range.range0, range.range1};
    const auto kept = measured_.find(owner);
    if (kept != measured_.end())
      std::tie(range.range0, range.range1) = kept->second;
    else if (had_owner)
      range.forget_measured();
    owner_ = owner;
  }
  /// Returns the measured ranges of all runs and races.
  std::map<RangeOwner, std::pair<double, double>> measured() const {
    auto all = measured_;
    all[owner_] = {range.range0, range.range1};
    std::erase_if(all, [](const auto& one) { return one.second.first == one.second.second; });
    return all;
  }
  /// Sets the measured range of a run or a race, unless it has one.
  void restore(const RangeOwner& owner, double from, double to) {
    auto& ends = measured_[owner];
    if (owner == owner_ && range.range0 != range.range1) ends = {range.range0, range.range1};
    if (ends.first != ends.second) return;
    ends = {from, to};
    if (owner == owner_) std::tie(range.range0, range.range1) = measured_[owner];
  }
  /// Returns whose measured range `range` has.
  const RangeOwner& owner() const { return owner_; }

 private:
  void forget_ranges() {
    range = {};
    measured_.clear();
  }

  RangeOwner owner_;  // whose measured range `range` has
  std::map<RangeOwner, std::pair<double, double>> measured_;
};

}  // namespace ui
