// The figures of the lanes of a race, row by row.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "ui/prepare/figure.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

struct Numbers;
struct RunTimes;

/// A row of the table.
struct DifferenceRow {
  const char* label;
  const char* formula;
  Truth truth = Truth::Derived;
};

inline constexpr std::array<DifferenceRow, 10> kDifferenceRows{{
    {"tokens / s", "committed tokens / own compute of the steps"},
    {"tokens / step", "committed tokens / steps, bonus tokens included"},
    {"speed-up", "own compute of plain decoding / own compute of the lane, in the same session"},
    {"step, median", "median of the own compute per step"},
    {"rows / step", "rows computed / steps"},
    {"accepted", "accepted / proposed; the others were rejected or not verified"},
    {"waste", "forward time of rows without a committed token"},
    {"tokens", "committed tokens", Truth::Measured},
    {"steps", "forward passes of the target", Truth::Measured},
    {"first difference", "first token that differs from plain decoding of the same model",
     Truth::Hindsight},
}};

/// The figures of a lane.
struct LaneFigures {
  std::string letter;   // the lane's letter: "A"
  std::string decoder;  // its short name, or the name that the user gave to the run
  std::array<std::string, kDifferenceRows.size()> values;
};

/// Computes the figures of the first `n_steps` steps.
LaneFigures lane_figures(const engine::Timeline& timeline,
                         const engine::RunRecord& run,
                         const RunTimes& times,
                         std::size_t n_steps);
/// The same, from numbers that were computed before.
LaneFigures lane_figures(const Numbers& numbers,
                         const engine::RunRecord& run,
                         const RunTimes& times,
                         std::size_t n_steps);
/// Returns the index of the first generated token in which two runs differ, among those that both have; -1 if there is none or if their models,
/// and so perhaps their vocabularies, are different.
int first_difference(const engine::RunRecord& run, const engine::RunRecord& reference);
/// Returns the run that a lane is compared with token by token: plain decoding by the lane's model among the runs shown, else nullptr.
const engine::RunRecord* plain_lane_of(const std::vector<const engine::RunRecord*>& runs,
                                       const engine::RunRecord& run);
/// Returns sentences on how the speed-ups were measured and against which lane: plain decoding by the lane's own model. Lanes have the letters that
/// they are shown with.
std::string how_measured(const engine::Timeline& timeline,
                         const std::vector<const engine::RunRecord*>& runs);
/// Returns the table in Markdown.
std::string as_markdown(std::span<const LaneFigures> lanes);

}  // namespace ui
