// The figures of a run at the playhead, each with its formula and the integers behind it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/timeline.h"
#include "ui/prepare/run_times.h"

namespace ui {

struct Figure {
  std::string label;    // "tokens / step"
  std::string value;    // "2.31", or "-" where it is undefined
  std::string formula;  // "committed / steps"
  std::string numbers;  // "97 / 42"
};

/// Judged proposals by their place behind the prefix (1 = directly behind it).
struct AcceptanceAt {
  int accepted = 0, judged = 0;
};

/// Counts that grow step by step; going back starts over.
struct Tally {
  engine::RunId run = 0;
  std::size_t n_steps = 0;
  std::vector<AcceptanceAt> by_place;  // [place - 1]
  std::vector<int> kept;               // [tokens a step committed] steps that did
};
void advance(Tally& tally, const engine::RunRecord& run, std::size_t n_steps);

struct Numbers {
  Figure tokens_per_second, tokens_per_step, speedup, step_median;
  std::vector<Figure> more;  // acceptance, waste, time to first token, counts
};
Numbers numbers_of(const engine::Timeline& timeline,
                   const engine::RunRecord& run,
                   const RunTimes& times,
                   std::size_t n_steps);

enum class Series { TokensPerSecond, TokensPerStep, StepMs, WasteShare };
/// The last `n` values of a series, oldest first; tokens/s over windows of eight steps.
std::vector<float> series_of(const RunTimes& times,
                             std::size_t n_steps,
                             Series series,
                             std::size_t n);

/// Own compute of the steps shown, in ms, in `n_bins` equal bins from 0 to `top` (the 99th part of
/// a hundred; what is above joins the last bin).
struct StepHistogram {
  std::vector<int> count;
  double top_ms = 0;
};
StepHistogram step_histogram(const RunTimes& times, std::size_t n_steps, int n_bins);

/// Numbers for people: 3 significant digits and a unit; "1,234" with separators; "-" for no number.
std::string short_number(double value);
std::string short_time(double ns);  // "5.8 ms", "31 us", "1.24 s"
std::string with_commas(std::int64_t n);
std::string percent(double share);  // 0.874 -> "87 %"

}  // namespace ui
