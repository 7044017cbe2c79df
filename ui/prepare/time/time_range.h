// The visible and the measured range of a time axis.
#pragma once

namespace ui {

/// Ranges in the unit of the axis's clock. In each, equal ends mean that there is no range.
struct TimeRange {
  double t0 = 0, t1 = 0;          // visible range; equal: everything is visible
  double range0 = 0, range1 = 0;  // measured range, in the order in which the user dragged its ends

  /// Makes everything visible; keeps the measured range.
  void show_all() { t0 = t1 = 0; }
  /// Removes the measured range.
  void forget_measured() { range0 = range1 = 0; }
  /// Returns true if a part of the axis is zoomed in.
  bool zoomed() const { return t1 > t0; }
};

}  // namespace ui
