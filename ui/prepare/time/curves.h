// Curves of a chart: thinning to the number of pixels, lookup and words of values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace ui {

/// A curve.
struct Curve {
  std::string name;
  std::vector<double> x, y;  // two lists of equal length; x ascends
};

/// A point of a curve.
struct ChartPoint {
  double x = 0, y = 0;
};
/// Thins the part of a curve in [x0, x1] to `n_columns`: keeps the first, lowest, highest and last value of each, so that spikes stay
/// visible. Keeps as many of the values before and after it. The values are finite; values <= 0 are left out for a logarithmic axis.
std::vector<ChartPoint> thinned(
    const Curve& curve, double x0, double x1, int n_columns, bool log = false);

/// Returns the index of the value nearest to x; nullopt if the curve has no values.
std::optional<std::size_t> nearest(const Curve& curve, double x);
/// Returns a value with few digits: "2.31", "0.00042", "12,345".
std::string value_in_words(double value);

}  // namespace ui
