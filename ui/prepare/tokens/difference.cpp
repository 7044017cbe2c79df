#include "ui/prepare/tokens/difference.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/status.h"
#include "ui/prepare/time/run_times.h"

namespace ui {
namespace {

using Runs = std::vector<const engine::RunRecord*>;

// Returns the letter of a run among those shown side by side; '?' if it is not shown.
char letter_among(const Runs& runs, const engine::RunRecord* run) {
  const auto at = std::ranges::find(runs, run);
  return at == runs.end() ? '?' : static_cast<char>('A' + (at - runs.begin()) % 26);
}

// A baseline run of plain decoding, and the letters of the lanes that are compared with it: "B, D".
struct Against {
  const engine::RunRecord* baseline;
  std::string lanes;
};

// Returns the baselines of all lanes with a speed-up. A run that is a baseline only of itself is omitted unless there is no other.
std::vector<Against> baselines_of(const engine::Timeline& timeline, const Runs& runs) {
  std::vector<Against> found;
  const engine::RunRecord* alone = nullptr;
  for (const engine::RunRecord* run : runs) {
    if (!timeline.speedup(*run)) continue;
    const engine::RunRecord* baseline = timeline.baseline_of(*run);
    if (baseline == run) {
      if (!alone) alone = run;
      continue;
    }
    auto at = std::ranges::find(found, baseline, &Against::baseline);
    if (at == found.end()) at = found.insert(at, {baseline, ""});
    at->lanes += (at->lanes.empty() ? "" : ", ") + std::string(1, letter_among(runs, run));
  }
  if (found.empty() && alone) found.push_back({alone, ""});
  return found;
}

}  // namespace

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
  lane.decoder = short_name(run.started.decoder);
  std::string difference = "-";
  if (run.agreement)
    difference = run.agreement->first_difference < 0
                     ? "none"
                     : fmt::format("{}", run.agreement->first_difference);
  lane.values = {numbers.tokens_per_second.value,
                 numbers.tokens_per_step.value,
                 numbers.speedup.value,
                 numbers.step_median.value,
                 n_steps > 0 ? fmt::format("{:.1f}", double(sums.rows) / double(n_steps)) : "-",
                 sums.proposed > 0 ? percent(double(sums.accepted) / double(sums.proposed)) : "-",
                 sums.rows > 0 ? short_time(sums.waste) : "-",
                 fmt::format("{}", sums.tokens),
                 fmt::format("{}", n_steps),
                 difference};
  return lane;
}

int first_difference(const engine::RunRecord& run, const engine::RunRecord& reference) {
  if (run.started.model != reference.started.model) return -1;
  const std::size_t n = std::min(run.tokens.size(), reference.tokens.size());
  for (std::size_t i = 0; i < n; ++i)
    if (run.tokens[i].id != reference.tokens[i].id) return static_cast<int>(i);
  return -1;
}

const engine::RunRecord* plain_lane_of(const Runs& runs, const engine::RunRecord& run) {
  const auto is_its = [&](const engine::RunRecord* other) {
    return other->started.decoder == "ar" && other->started.model == run.started.model;
  };
  const auto found = std::ranges::find_if(runs, is_its);
  return found == runs.end() ? nullptr : *found;
}

std::string how_measured(const engine::Timeline& timeline, const Runs& runs) {
  std::string text = "Lanes share the device in turns; only a lane's own compute counts.";
  if (std::ranges::any_of(runs, [](const auto* run) { return !run->queueing.empty(); }))
    text += " A sequence that shared the models with others has no speed-up of its own.";
  for (const engine::RunRecord* run : runs)
    if (const std::string why = timeline.why_other_load(*run); !why.empty())
      text += fmt::format(" {} has no speed-up: {}", letter_among(runs, run), why);
  const std::vector<Against> baselines = baselines_of(timeline, runs);
  if (baselines.empty())
    return "Speed-ups are shown after plain decoding of this prompt has finished. " + text;
  const auto is_shown = [&](const Against& one) { return letter_among(runs, one.baseline) != '?'; };
  if (baselines.size() > 1) {
    std::string each;
    for (const Against& one : baselines) {
      each += (each.empty() ? ", " : "; ") + one.lanes + " against ";
      each += is_shown(one) ? std::string(1, letter_among(runs, one.baseline)) : "a run not shown";
    }
    return fmt::format(
               "Speed-ups are ratios of own compute{}: plain decoding of this prompt by the lane's "
               "own model in the same session. ",
               each) +
           text;
  }
  if (is_shown(baselines.front()))
    return fmt::format(
               "Speed-ups are ratios of own compute against {}, plain decoding of this prompt in "
               "the same session. ",
               letter_among(runs, baselines.front().baseline)) +
           text;
  return "Speed-ups are ratios of own compute against plain decoding of this prompt in the same "
         "session. " +
         text;
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
