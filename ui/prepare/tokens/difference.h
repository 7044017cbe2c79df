// The lanes of a race in numbers, row by row.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/numbers.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

struct DifferenceRow {
  const char* label;
  const char* formula;
  Truth truth = Truth::Derived;
};

inline constexpr std::array<DifferenceRow, 9> kDifferenceRows{{
    {"tokens / s", "committed tokens / own compute of the steps"},
    {"tokens / step", "committed / steps, the bonus token included"},
    {"speedup", "own compute of plain decoding / own compute of the lane, both of one session"},
    {"step, median", "median of the steps' own compute"},
    {"rows / step", "rows computed / steps"},
    {"accepted", "accepted / (accepted + rejected)"},
    {"waste", "forward time of rows that were thrown away"},
    {"tokens, steps", "committed tokens, forward passes", Truth::Measured},
    {"first difference", "first token that differs from plain decoding of the same model",
     Truth::Hindsight},
}};

struct LaneFigures {
  std::string letter;  // "A"
  std::string decoder;
  std::array<std::string, kDifferenceRows.size()> values;
};

LaneFigures lane_figures(const engine::Timeline& timeline,
                         const engine::RunRecord& run,
                         const RunTimes& times,
                         std::size_t n_steps);
/// The same of numbers prepared before.
LaneFigures lane_figures(const Numbers& numbers,
                         const engine::RunRecord& run,
                         const RunTimes& times,
                         std::size_t n_steps);
/// How the speed-ups shown were measured, and against which lane each: plain decoding by its own
/// model. Lanes go by the letters that they have side by side.
std::string how_measured(const engine::Timeline& timeline,
                         const std::vector<const engine::RunRecord*>& runs);
std::string as_markdown(std::span<const LaneFigures> lanes);

}  // namespace ui
