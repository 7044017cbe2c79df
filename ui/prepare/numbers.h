// The figures of a run at the playhead, each with its formula and the integers behind it.
#pragma once

#include <string>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

/// Where a figure comes from: measured; derived from measured ones; known only afterwards.
enum class Truth { Measured, Derived, Hindsight, Simulated };
const char* truth_mark(Truth truth);   // "", "d", "h", "s"
const char* truth_words(Truth truth);  // "d: derived from measured figures"

/// The steps a figure was taken from.
enum class Behind {
  None,          ///< not of this run's steps
  All,           ///< every step shown
  Proposed,      ///< those that proposed something
  VerifiedNode,  ///< those in which a proposal was accepted or rejected
  Wasted,        ///< those that computed rows and threw them away
  First,         ///< the first that committed
  Median,        ///< those whose own compute is the median's, within a hundredth
};

struct Figure {
  std::string label;    // "tokens / step"
  std::string value;    // "2.31", or "-" where it is undefined
  std::string formula;  // "committed / steps"
  std::string numbers;  // "97 / 42"
  Truth truth = Truth::Measured;
  Behind behind = Behind::None;
};

/// Steps of the first `n_steps`, oldest first.
std::vector<engine::StepId> steps_behind(const RunTimes& times, std::size_t n_steps, Behind behind);
/// What they have in common: "proposed something".
const char* behind_words(Behind behind);
/// Those that committed so many tokens.
std::vector<engine::StepId> steps_that_brought(const RunTimes& times,
                                               std::size_t n_steps,
                                               int n_tokens);
/// Those in which the proposal at a place behind the prefix (1: directly behind it) was judged.
std::vector<engine::StepId> steps_judging(const engine::RunRecord& run,
                                          std::size_t n_steps,
                                          int place);

/// After so many steps that proposed something, all in vain, the person is told.
inline constexpr std::size_t kVainSteps = 20;
/// The newest such steps if nothing they proposed was accepted, at most kVainSteps of them, newest
/// last; empty where something was. Steps that proposed nothing do not count.
std::vector<engine::StepId> steps_in_vain(const RunTimes& times, std::size_t n_steps);

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
/// The steps a bin counts.
std::vector<engine::StepId> steps_in_bin(const RunTimes& times,
                                         std::size_t n_steps,
                                         const StepHistogram& histogram,
                                         int bin);

/// Numbers for people: 3 significant digits and a unit; "1,234" with separators; "-" for no number.
std::string short_number(double value);
std::string short_time(double ns);  // "5.8 ms", "31 us", "1.24 s"
std::string with_commas(std::int64_t n);
std::string percent(double share);  // 0.874 -> "87 %"

}  // namespace ui
