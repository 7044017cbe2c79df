#include "ui/prepare/time/curves.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ui/prepare/figure.h"

namespace ui {
namespace {

// Values are clamped to this magnitude. Larger ones come from a damaged file, and their differences could overflow.
constexpr double kLargest = 1e30;
constexpr double kMargin = 0.05;  // share of the height, above and below

double tamed(double value) {
  return std::isfinite(value) ? std::clamp(value, -kLargest, kLargest) : 0;
}

bool is_seen(double y, bool log) {
  return std::isfinite(y) && (!log || y > 0);
}

// Returns 1, 2 or 5 times a power of ten, so that about `n` steps fill `length`.
double round_step(double length, int n) {
  const double rough = length / std::max(1, n);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double times : {1.0, 2.0, 5.0})
    if (rough <= times * power * 1.0001) return times * power;
  return 10 * power;
}

std::string in_steps(double value, double step) {
  if (std::abs(value) < step * 1e-6) return "0";
  const double size = std::max(std::abs(value), step);
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:.3g}", value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  if (decimals == 0) return with_commas(static_cast<std::int64_t>(std::llround(value)));
  return fmt::format("{:.{}f}", value, decimals);
}

std::vector<Tick> even_ticks(double from, double to, int n_about) {
  std::vector<Tick> ticks;
  const double step = round_step(to - from, n_about);
  const double first = std::ceil(from / step - 1e-6);
  for (int i = 0; i <= 2 * n_about + 2; ++i) {
    const double at = (first + i) * step;
    if (at > to + step * 1e-6) break;
    ticks.push_back({at, in_steps(at, step)});
  }
  return ticks;
}

// Returns the powers of ten; also 2 and 5 times each if there are few.
std::vector<Tick> log_ticks(double from, double to, int n_about) {
  const int low = static_cast<int>(std::floor(std::log10(from)));
  const int high = static_cast<int>(std::ceil(std::log10(to)));
  if (to / from < 3) return even_ticks(from, to, n_about);
  const bool few = high - low <= 3;
  const int every = std::max(1, (high - low) / std::max(1, n_about));
  std::vector<Tick> ticks;
  for (int power = low; power <= high; power += every)
    for (const double times : {1.0, 2.0, 5.0}) {
      if (times > 1 && !few) break;
      const double at = times * std::pow(10.0, power);
      if (at >= from * 0.9999 && at <= to * 1.0001) ticks.push_back({at, value_in_words(at)});
    }
  return ticks;
}

}  // namespace

double ChartRange::height_of(double y) const {
  const double value = log ? std::log(std::max(tamed(y), y0 * 1e-9)) : tamed(y);
  const double low = log ? std::log(y0) : y0, high = log ? std::log(y1) : y1;
  return (value - low) / (high - low);
}

double ChartRange::value_at(double height) const {
  if (!log) return y0 + height * (y1 - y0);
  return std::exp(std::log(y0) + height * (std::log(y1) - std::log(y0)));
}

ChartRange range_of(std::span<const Curve> curves, bool log) {
  bool any = false, any_positive = false;
  for (const Curve& curve : curves)
    for (const double y : curve.y) any_positive = any_positive || is_seen(y, true);
  ChartRange range{.log = log && any_positive};
  for (const Curve& curve : curves) {
    for (std::size_t i = 0; i < curve.y.size(); ++i) {
      if (!is_seen(curve.y[i], range.log)) continue;
      const double x = tamed(curve.x[i]), y = tamed(curve.y[i]);
      if (!any) range = {x, x, y, y, range.log};
      any = true;
      range.x0 = std::min(range.x0, x);
      range.x1 = std::max(range.x1, x);
      range.y0 = std::min(range.y0, y);
      range.y1 = std::max(range.y1, y);
    }
  }
  // Centres a single value, or equal values.
  const auto widen = [](double& low, double& high) {
    if (high - low > 1e-12 * std::max(std::abs(low), std::abs(high))) return;
    const double half = std::max(std::abs(low) / 2, 0.5);
    low -= half;
    high += half;
  };
  widen(range.x0, range.x1);
  if (range.log) {
    const double more = std::pow(range.y1 / range.y0, kMargin);
    range.y0 /= std::max(more, 1.1);
    range.y1 *= std::max(more, 1.1);
    return range;
  }
  const bool from_zero = any && range.y0 >= 0;
  widen(range.y0, range.y1);
  const double more = kMargin * (range.y1 - range.y0);
  range.y0 -= more;
  range.y1 += more;
  if (from_zero && range.y0 < 0) range.y0 = 0;
  return range;
}

std::vector<ChartPoint> thinned(const Curve& curve, const ChartRange& range, int n_columns) {
  std::vector<ChartPoint> points;
  const double per_column = (range.x1 - range.x0) / std::max(1, n_columns);
  const auto column_of = [&](std::size_t i) {
    return std::floor((tamed(curve.x[i]) - range.x0) / per_column);
  };
  const std::size_t n = curve.y.size();
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin, low = n, high = n, last = n;
    std::size_t first = n;
    const double column = column_of(begin);
    for (; end < n && column_of(end) == column; ++end) {
      if (!is_seen(curve.y[end], range.log)) continue;
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

std::vector<Tick> x_ticks(const ChartRange& range, int n_about) {
  return even_ticks(range.x0, range.x1, n_about);
}

std::vector<Tick> y_ticks(const ChartRange& range, int n_about) {
  return range.log ? log_ticks(range.y0, range.y1, n_about)
                   : even_ticks(range.y0, range.y1, n_about);
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
