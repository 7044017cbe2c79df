// Lines over a common axis, as a chart draws them: what of them is seen at how many pixels, where
// the axes have their ticks, and what stands under the mouse.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ui {

struct Curve {
  std::string name;
  std::vector<double> x, y;  // of one length, x rising
};

/// What a chart shows.
struct ChartRange {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  bool log = false;  // y by its logarithm: then y0 is above 0

  /// Where a value lies between the lower edge (0) and the upper one (1).
  double height_of(double y) const;
  double value_at(double height) const;
};

/// Room for all of the curves; with a little more above and below. Values that a logarithm does not
/// take count for nothing in one. Never empty, however few values there are.
/// @param log  as far as there is a value above 0
ChartRange range_of(std::span<const Curve> curves, bool log);

/// What is left of a curve at so many columns: of each its first, lowest, highest and last value,
/// in their order, so that a spike of one value stays.
struct ChartPoint {
  double x = 0, y = 0;
};
std::vector<ChartPoint> thinned(const Curve& curve, const ChartRange& range, int n_columns);

struct Tick {
  double at = 0;
  std::string words;  // "0.25", "12,000", "1e-05"
};
/// At round numbers, about so many.
std::vector<Tick> x_ticks(const ChartRange& range, int n_about);
std::vector<Tick> y_ticks(const ChartRange& range, int n_about);

/// Index of the value nearest to x; none: the curve has no values.
std::optional<std::size_t> nearest(const Curve& curve, double x);
/// A value in few digits, as a chart's readout says it: "2.31", "0.00042", "12,345".
std::string value_in_words(double value);

}  // namespace ui
