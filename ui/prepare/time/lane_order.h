// In which order a person has put the lanes of the time line, and which are collapsed or hidden.
#pragma once

#include <array>
#include <compare>
#include <span>
#include <vector>

#include "ui/prepare/time/gantt.h"

namespace ui {

/// A lane of any run that stands at this place among those shown together.
struct LaneKey {
  int place = -1;  // -1: a run by itself
  LaneKind kind = LaneKind::Target;
  auto operator<=>(const LaneKey&) const = default;
};

class LaneOrder {
 public:
  /// `natural` in the person's order, without what is hidden. A lane that was not there when the
  /// order was made stands behind its natural predecessor.
  std::vector<LaneKey> arranged(std::span<const LaneKey> natural) const;
  /// Puts a lane at a place of what arranged() gives; places beyond its ends mean the ends.
  void move(std::span<const LaneKey> natural, LaneKey lane, int to);
  bool collapsed(LaneKey lane) const;
  void toggle_collapsed(LaneKey lane);
  void hide(LaneKey lane);
  void show_all() { hidden_.clear(); }
  int n_hidden(std::span<const LaneKey> natural) const;

  /// As they are kept beside a recording: every lane once moved, in order; those collapsed; hidden.
  std::array<std::vector<LaneKey>, 3> kept() const { return {order_, collapsed_, hidden_}; }
  void restore(std::array<std::vector<LaneKey>, 3> kept);
  bool untouched() const { return order_.empty() && collapsed_.empty() && hidden_.empty(); }
  bool operator==(const LaneOrder&) const = default;

 private:
  std::vector<LaneKey> all_arranged(std::span<const LaneKey> natural) const;
  bool hidden(LaneKey lane) const;

  std::vector<LaneKey> order_, collapsed_, hidden_;
};

}  // namespace ui
