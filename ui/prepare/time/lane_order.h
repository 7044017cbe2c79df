// The order in which the user arranged the timeline's lanes, and the lanes that are collapsed or hidden.
#pragma once

#include <array>
#include <compare>
#include <span>
#include <vector>

#include "ui/prepare/time/lane_kind.h"

namespace ui {

/// A lane, identified by the place of its run among the runs shown, not by the run.
struct LaneKey {
  int place = -1;  // place of the run, from 0; -1: a single run is shown
  LaneKind kind = LaneKind::Target;
  auto operator<=>(const LaneKey&) const = default;
};

/// The arrangement of the lanes. `natural` is always the list of existing lanes in their default order.
class LaneOrder {
 public:
  /// Returns the visible lanes in the user's order. A lane that the user has not arranged follows its predecessor in `natural`.
  std::vector<LaneKey> arranged(std::span<const LaneKey> natural) const;
  /// Moves a lane to an index of arranged(); the index is clamped to the list.
  void move(std::span<const LaneKey> natural, LaneKey lane, int to);
  /// Returns true if the lane is drawn as a thin line.
  bool collapsed(LaneKey lane) const;
  /// Collapses the lane, or expands it again.
  void toggle_collapsed(LaneKey lane);
  /// Hides the lane.
  void hide(LaneKey lane);
  /// Shows all hidden lanes again.
  void show_all() { hidden_.clear(); }
  /// Returns the number of existing lanes that are hidden.
  int n_hidden(std::span<const LaneKey> natural) const;

  /// Returns the three lists that are saved beside a recording: the order, the collapsed lanes, the hidden lanes.
  std::array<std::vector<LaneKey>, 3> kept() const { return {order_, collapsed_, hidden_}; }
  /// Sets the three lists of kept().
  void restore(std::array<std::vector<LaneKey>, 3> kept);
  /// Returns true if the user has arranged nothing.
  bool untouched() const { return order_.empty() && collapsed_.empty() && hidden_.empty(); }
  bool operator==(const LaneOrder&) const = default;

 private:
  std::vector<LaneKey> all_arranged(std::span<const LaneKey> natural) const;
  bool hidden(LaneKey lane) const;

  std::vector<LaneKey> order_, collapsed_, hidden_;
};

}  // namespace ui
