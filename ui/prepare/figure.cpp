#include "ui/prepare/figure.h"

#include <atomic>
#include <cmath>

#include <fmt/format.h>

namespace ui {
namespace {

std::atomic<UnitStyle> style_of_units = UnitStyle::Short;  // files are written on other threads

}  // namespace

UnitStyle unit_style() {
  return style_of_units;
}

void set_unit_style(UnitStyle style) {
  style_of_units = style;
}

const char* truth_mark(Truth truth) {
  switch (truth) {
    case Truth::Measured:
      return "";
    case Truth::Derived:
      return "d";
    case Truth::Hindsight:
      return "h";
    case Truth::Simulated:
      break;
  }
  return "s";
}

const char* truth_words(Truth truth) {
  switch (truth) {
    case Truth::Measured:
      return "measured";
    case Truth::Derived:
      return "d: derived from measured figures";
    case Truth::Hindsight:
      return "h: known only in hindsight";
    case Truth::Simulated:
      break;
  }
  return "s: simulated with given stage times, not measured";
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  if (std::abs(value) >= 9999.5) return with_commas(std::llround(value));
  if (std::abs(value) >= 99.95) return fmt::format("{:.0f}", value);
  return fmt::format(fmt::runtime(std::abs(value) >= 9.995 ? "{:.1f}" : "{:.2f}"), value);
}

std::string short_time(double ns) {
  if (!std::isfinite(ns)) return "-";
  const double size = std::abs(ns);
  constexpr double kWhole = 9e18;  // larger values are no 64-bit integers
  if (unit_style() == UnitStyle::Full && size < kWhole)
    return with_commas(std::llround(ns)) + " ns";
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  const double unit = size < 999.5e3 ? 1e3 : size < 999.5e6 ? 1e6 : 1e9;
  const char* name = unit == 1e3 ? "us" : unit == 1e6 ? "ms" : "s";
  const double v = ns / unit;
  return fmt::format(fmt::runtime(std::abs(v) >= 99.95   ? "{:.0f} {}"
                                  : std::abs(v) >= 9.995 ? "{:.1f} {}"
                                                         : "{:.2f} {}"),
                     v, name);
}

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return n < 0 ? "-" + digits : digits;
}

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", share * 100) : "-";
}

}  // namespace ui
