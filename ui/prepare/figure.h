// A figure as the window shows it: its value, its formula and where it comes from. Also formats numbers for display.
#pragma once

#include <cstdint>
#include <string>

namespace ui {

/// The origin of a figure.
enum class Truth {
  Measured,   ///< measured directly
  Derived,    ///< computed from measured figures
  Hindsight,  ///< known only after the block or the run has ended
  Simulated,  ///< computed for given stage times, not measured
};
/// Returns the letter shown beside a figure: "", "d", "h" or "s".
const char* truth_mark(Truth truth);
/// Returns the letter and its meaning: "d: derived from measured figures".
const char* truth_words(Truth truth);

/// The steps of a run that a figure was computed from.
enum class StepSet {
  None,      ///< no steps of this run
  All,       ///< every step shown
  Proposed,  ///< steps that proposed tokens
  Verified,  ///< steps in which at least one proposal was accepted or rejected
  Wasted,    ///< steps that computed rows without committing a token for them
  First,     ///< the first step that committed a token
  Median,    ///< steps whose own compute is within 1 % of the median
};

/// Figures that change while a run is decoded change at most once in this time, s, so that they can be read.
inline constexpr double kLiveSeconds = 0.1;

/// One figure of a run.
struct Figure {
  std::string label;    // the label: "tokens / step"
  std::string value;    // the value: "2.31", or "-" if it is undefined
  std::string formula;  // the formula in words: "committed / steps"
  std::string numbers;  // the formula in numbers: "97 / 42"
  Truth truth = Truth::Measured;
  StepSet step_set = StepSet::None;
};

/// Returns three significant digits, thousands separators from 10,000 on; "-" if the value is not finite.
std::string short_number(double value);
/// How short_time() writes a duration.
enum class UnitStyle {
  Short,  ///< three digits and a unit: "5.81 ms"
  Full,   ///< ns with separators: "5,812,345 ns"
};
/// Returns the style of the process; Short until it is set.
UnitStyle unit_style();
/// Sets the style of the process. Only the shell calls it, at the start of a frame, from the settings; a test that calls it restores Short.
void set_unit_style(UnitStyle style);
/// Returns a duration given in ns in the style of the process: "5.81 ms", "31.0 us", "1.24 s"; "-" if it is not finite.
std::string short_time(double ns);
/// Returns an integer with thousands separators: "1,234".
std::string with_commas(std::int64_t n);
/// Returns a share as a whole percentage: 0.874 gives "87 %".
std::string percent(double share);

}  // namespace ui
