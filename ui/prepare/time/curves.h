// Curves of a chart: visible range, thinning to the number of pixels, ticks of the axes, lookup of values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ui {

/// A curve.
struct Curve {
  std::string name;
  std::vector<double> x, y;  // two lists of equal length; x ascends
};

/// The range that a chart shows.
struct ChartRange {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  bool log = false;  // the y axis is logarithmic; then y0 > 0

  /// Returns the height of a value, from 0 at the lower edge to 1 at the upper edge.
  double height_of(double y) const;
  /// Returns the value at a height.
  double value_at(double height) const;
};

/// Returns a range that contains all curves with a margin above and below; never empty. A logarithmic range ignores values <= 0.
/// @param log  requests a logarithmic range; it is linear if no value is > 0
ChartRange range_of(std::span<const Curve> curves, bool log);

/// A point of a curve.
struct ChartPoint {
  double x = 0, y = 0;
};
/// Thins a curve to `n_columns`: keeps the first, lowest, highest and last value of each, so that spikes stay visible.
std::vector<ChartPoint> thinned(const Curve& curve, const ChartRange& range, int n_columns);

/// A tick of an axis.
struct Tick {
  double at = 0;
  std::string words;  // the label: "0.25", "12,000", "1e-05"
};
/// Returns about `n_about` ticks of the x axis, at round numbers.
std::vector<Tick> x_ticks(const ChartRange& range, int n_about);
/// Returns the same for the y axis.
std::vector<Tick> y_ticks(const ChartRange& range, int n_about);

/// Returns the index of the value nearest to x; nullopt if the curve has no values.
std::optional<std::size_t> nearest(const Curve& curve, double x);
/// Returns a value with few digits: "2.31", "0.00042", "12,345".
std::string value_in_words(double value);

}  // namespace ui
