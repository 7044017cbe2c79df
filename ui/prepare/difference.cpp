#include "ui/prepare/difference.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "ui/prepare/numbers.h"

namespace ui {

LaneFigures lane_figures(const engine::Timeline& timeline,
                         const engine::RunRecord& run,
                         const RunTimes& times,
                         std::size_t n_steps) {
  return lane_figures(numbers_of(timeline, run, times, n_steps), run, times, n_steps);
}

LaneFigures lane_figures(const Numbers& numbers,
                         const engine::RunRecord& run,
                         const RunTimes& times,
                         std::size_t n_steps) {
  n_steps = std::min(n_steps, times.steps.size());
  const StepSums& sums = times.sums(n_steps);
  LaneFigures lane;
  lane.letter = std::string(1, static_cast<char>('A' + run.started.lane % 26));
  lane.decoder = run.started.decoder;
  const auto judged = static_cast<double>(sums.accepted + sums.rejected);
  std::string difference = "-";
  if (run.agreement)
    difference = run.agreement->first_difference < 0
                     ? "none"
                     : fmt::format("{}", run.agreement->first_difference);
  lane.values = {numbers.tokens_per_second.value,
                 numbers.tokens_per_step.value,
                 numbers.speedup.value,
                 numbers.step_median.value,
                 n_steps > 0 ? fmt::format("{:.1f}", double(sums.rows) / n_steps) : "-",
                 judged > 0 ? percent(sums.accepted / judged) : "-",
                 sums.rows > 0 ? short_time(sums.waste) : "-",
                 fmt::format("{}, {}", sums.tokens, n_steps),
                 difference};
  return lane;
}

std::string how_measured(const engine::Timeline& timeline,
                         const std::vector<const engine::RunRecord*>& runs) {
  bool some = false;
  std::optional<char> baseline;  // its letter, as the runs stand side by side
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i]->started.decoder == "ar" && !baseline) baseline = static_cast<char>('A' + i % 26);
    some = some || timeline.speedup(*runs[i]).has_value();
  }
  std::string text = "Lanes take turns on the device; only a lane's own compute counts.";
  if (std::ranges::any_of(runs, [](const auto* run) { return !run->queueing.empty(); }))
    text += " A text that took turns with others has no speed-up of its own.";
  if (some && baseline)
    return fmt::format(
               "Speed-ups are own compute against {}, plain decoding of this prompt in "
               "the same session. ",
               *baseline) +
           text;
  if (some)
    return "Speed-ups are own compute against a plain run of this prompt in the same session. " +
           text;
  return "No speed-up is shown until a plain decoding run of this prompt has finished. " + text;
}

std::string as_markdown(std::span<const LaneFigures> lanes) {
  std::string text = "|  |", rule = "\n|---|";
  for (const LaneFigures& lane : lanes) {
    text += fmt::format(" {} {} |", lane.letter, lane.decoder);
    rule += "---:|";
  }
  text += rule;
  for (std::size_t row = 0; row < kDifferenceRows.size(); ++row) {
    text += fmt::format("\n| {} |", kDifferenceRows[row].label);
    for (const LaneFigures& lane : lanes) text += fmt::format(" {} |", lane.values[row]);
  }
  return text + "\n";
}

}  // namespace ui
