#include "ui/prepare/time/curves.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ui/prepare/figure.h"

namespace ui {
namespace {

// Values are clamped to this magnitude. Larger ones come from a damaged file, and their differences could overflow.
constexpr double kLargest = 1e30;

double tamed(double value) {
  return std::isfinite(value) ? std::clamp(value, -kLargest, kLargest) : 0;
}

bool is_seen(double y, bool log) {
  return std::isfinite(y) && (!log || y > 0);
}

}  // namespace

std::vector<ChartPoint> thinned(const Curve& curve, double x0, double x1, int n_columns, bool log) {
  std::vector<ChartPoint> points;
  const double per_column = (x1 - x0) / std::max(1, n_columns);
  // Columns -1 and n_columns hold the values outside the range.
  const auto column_of = [&](std::size_t i) {
    return std::clamp(std::floor((tamed(curve.x[i]) - x0) / per_column), -1.0,
                      static_cast<double>(n_columns));
  };
  const std::size_t n = curve.y.size();
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin, low = n, high = n, last = n;
    std::size_t first = n;
    const double column = column_of(begin);
    for (; end < n && column_of(end) == column; ++end) {
      if (!is_seen(curve.y[end], log)) continue;
      if (first == n) first = low = high = end;
      if (curve.y[end] < curve.y[low]) low = end;
      if (curve.y[end] > curve.y[high]) high = end;
      last = end;
    }
    begin = end;
    if (first == n) continue;
    std::size_t before = n;
    for (const std::size_t i : {first, std::min(low, high), std::max(low, high), last}) {
      if (i != before) points.push_back({tamed(curve.x[i]), tamed(curve.y[i])});
      before = i;
    }
  }
  return points;
}

std::optional<std::size_t> nearest(const Curve& curve, double x) {
  if (curve.x.empty()) return std::nullopt;
  const auto after = std::ranges::lower_bound(curve.x, x);
  const auto i = static_cast<std::size_t>(after - curve.x.begin());
  if (i == curve.x.size()) return i - 1;
  if (i > 0 && x - curve.x[i - 1] < curve.x[i] - x) return i - 1;
  return i;
}

std::string value_in_words(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1'000 && size < 1e12)
    return with_commas(static_cast<std::int64_t>(std::llround(value)));
  return fmt::format("{:.3g}", value);
}

}  // namespace ui
