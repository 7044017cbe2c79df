// The results of a set of prompts: each prompt in each lane, and each task in each lane.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// A prompt in one lane, over its repeats. Only runs that ended by themselves count.
struct PromptResult {
  std::uint32_t race = 0;  // the first race of the prompt
  engine::RunId run = 0;   // the lane's run in it
  int prompt = 0, lane = 0;
  std::string prompt_id, task, decoder;
  std::optional<double> speedup;  // median over the repeats
  std::string why_no_speedup;     // Timeline::why_other_load() of a repeat without a speed-up
  std::int64_t tokens = 0, steps = 0, accepted = 0, proposed = 0;
  bool is_compared = false;
  int first_difference = -1;  // index of the first token that differs from plain decoding; -1: none

  std::optional<double> tokens_per_step() const;  // tokens / steps
  std::optional<double> acceptance() const;       // accepted / proposed
};

/// A task in one lane: its prompts together.
struct TaskResult {
  std::string task, decoder;  // an empty task: of prompts without one
  int lane = 0, n_prompts = 0;
  std::optional<double> speedup;  // geometric mean over the prompts that have one
  std::string why_no_speedup;     // of a prompt without one
  std::int64_t tokens = 0, steps = 0, accepted = 0, proposed = 0;
  int n_identical = 0, n_compared = 0;

  std::optional<double> tokens_per_step() const;  // tokens / steps
  std::optional<double> acceptance() const;       // accepted / proposed
};

/// Returns the number of the set whose prompts the window lists: that of the race shown, else the newest one with several prompts; 0: none.
std::uint32_t listed_set(const engine::Timeline& timeline, std::uint32_t shown_race);

/// The speed-up of a run, or why it has none under another load.
struct KnownSpeedup {
  std::optional<double> value;
  std::string why_no;
};
/// The speed-ups of runs whose race is complete: finding a run's baseline takes time with many runs.
using Speedups = std::map<engine::RunId, KnownSpeedup>;
/// Computes the results of a set, by prompt and lane.
/// @param speedups  speed-ups that were computed before; extended
std::vector<PromptResult> prompt_results(const engine::Timeline& timeline,
                                         std::uint32_t set,
                                         Speedups& speedups);
/// Sums them by task and lane, in the order in which tasks and lanes occur; with several tasks, all of them together come last, as task "all".
std::vector<TaskResult> task_results(const std::vector<PromptResult>& prompts);

/// A column of the tables.
enum class ResultColumn : std::uint8_t {
  Name,
  Task,
  Lane,
  Speedup,
  TokensPerStep,
  Acceptance,
  Difference
};
/// Sorts by a column; equal rows keep their order, and undefined values come last.
void sort_results(std::vector<PromptResult>& rows, ResultColumn by, bool descending);
/// The same for tasks; Name and Task are the task.
void sort_results(std::vector<TaskResult>& rows, ResultColumn by, bool descending);

/// The points of a lane in the scatter of speed-up against acceptance: its prompts that have both.
struct ScatterLane {
  int lane = 0;
  std::string decoder;
  std::vector<double> acceptance_percent, speedup;
  std::vector<std::size_t> rows;  // [points] index of the prompt's row
};
/// Returns the lanes that have points.
std::vector<ScatterLane> scatter_of(const std::vector<PromptResult>& prompts);

/// Returns "1.41x", why it was refused in a few words, or "-".
std::string speedup_words(const PromptResult& row);
std::string speedup_words(const TaskResult& row);
/// Returns "identical", "differs at 12", or "-" if the run was not compared.
std::string difference_words(const PromptResult& row);
/// Returns how many of the compared prompts are identical, "9 of 10"; "-" if no run was compared.
std::string difference_words(const TaskResult& row);

}  // namespace ui
