#include "ui/prepare/sets/prompt_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/measure/spread.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/status.h"

namespace ui {
namespace {

std::optional<double> ratio(std::int64_t over, std::int64_t under) {
  if (under <= 0) return std::nullopt;
  return static_cast<double>(over) / static_cast<double>(under);
}

// Adds a run of the prompt's repeats.
void add(PromptResult& row, const engine::RunRecord& run) {
  row.tokens += run.totals.n_tokens;
  row.steps += run.totals.n_steps;
  row.accepted += run.totals.n_accepted;
  row.proposed += run.totals.n_proposed;
  if (!run.agreement) return;
  row.is_compared = true;
  if (row.first_difference < 0) row.first_difference = run.agreement->first_difference;
}

TaskResult task_of(const PromptResult& row, const std::string& task) {
  return {.task = task, .decoder = row.decoder, .lane = row.lane};
}

// Sums the rows of prompts, and the logarithms of their speed-ups.
struct TaskSum {
  TaskResult result;
  double log_speedup = 0;
  int n_speedups = 0;

  void add(const PromptResult& row) {
    ++result.n_prompts;
    result.tokens += row.tokens, result.steps += row.steps;
    result.accepted += row.accepted, result.proposed += row.proposed;
    result.n_compared += row.is_compared;
    result.n_identical += row.is_compared && row.first_difference < 0;
    if (!row.speedup && !row.why_no_speedup.empty()) result.why_no_speedup = row.why_no_speedup;
    if (row.speedup && *row.speedup > 0) log_speedup += std::log(*row.speedup), ++n_speedups;
  }
  TaskResult take() {
    if (n_speedups > 0) result.speedup = std::exp(log_speedup / n_speedups);
    return result;
  }
};

template <class Row>
std::string words_of_speedup(const Row& row) {
  if (row.speedup) return fmt::format("{:.2f}x", *row.speedup);
  return row.why_no_speedup.empty() ? "-" : engine::kOtherLoad;
}

// The race of a run is complete if the run was compared with its baseline.
KnownSpeedup speedup_of(const engine::Timeline& timeline,
                        const engine::RunRecord& run,
                        Speedups& known) {
  if (const auto found = known.find(run.id()); found != known.end()) return found->second;
  KnownSpeedup speedup{timeline.speedup(run), ""};
  if (!speedup.value) speedup.why_no = timeline.why_other_load(run);
  if (run.agreement || run.started.decoder == "ar") known[run.id()] = speedup;
  return speedup;
}

// Sorts by a key; std::nullopt is the last one in both directions.
template <class Row, class Key>
void sort_by(std::vector<Row>& rows, bool descending, Key key) {
  std::ranges::stable_sort(rows, [&](const Row& a, const Row& b) {
    const auto of_a = key(a), of_b = key(b);
    if (!of_a || !of_b) return of_a.has_value() && !of_b.has_value();
    return descending ? *of_b < *of_a : *of_a < *of_b;
  });
}

// The columns that both tables have.
template <class Row>
void sort_by_figure(std::vector<Row>& rows, ResultColumn by, bool descending) {
  switch (by) {
    case ResultColumn::Lane:
      return sort_by(rows, descending, [](const Row& row) { return std::optional(row.lane); });
    case ResultColumn::Speedup:
      return sort_by(rows, descending, [](const Row& row) { return row.speedup; });
    case ResultColumn::TokensPerStep:
      return sort_by(rows, descending, [](const Row& row) { return row.tokens_per_step(); });
    case ResultColumn::Acceptance:
      return sort_by(rows, descending, [](const Row& row) { return row.acceptance(); });
    default:
      return sort_by(rows, descending, [](const Row& row) { return std::optional(row.task); });
  }
}

}  // namespace

std::optional<double> PromptResult::tokens_per_step() const {
  return ratio(tokens, steps);
}

std::optional<double> PromptResult::acceptance() const {
  return ratio(accepted, proposed);
}

std::optional<double> TaskResult::tokens_per_step() const {
  return ratio(tokens, steps);
}

std::optional<double> TaskResult::acceptance() const {
  return ratio(accepted, proposed);
}

std::uint32_t listed_set(const engine::Timeline& timeline, std::uint32_t shown_race) {
  std::uint32_t newest = 0;
  for (const engine::RunRecord& run : timeline.runs()) {
    if (run.started.place.n_prompts < 2) continue;
    newest = run.started.place.set;
    if (shown_race != 0 && run.started.race == shown_race) return newest;
  }
  return newest;
}

std::vector<PromptResult> prompt_results(const engine::Timeline& timeline,
                                         std::uint32_t set,
                                         Speedups& known) {
  std::vector<PromptResult> rows;
  std::map<std::pair<int, int>, std::size_t> row_of;  // by prompt and lane
  std::vector<std::vector<double>> speedups;          // [rows]
  for (const engine::RunRecord& run : timeline.runs()) {
    const engine::RunStarted& s = run.started;
    if (set == 0 || s.place.set != set) continue;
    const auto [at, is_new] = row_of.try_emplace({s.place.prompt, s.lane}, rows.size());
    if (is_new) {
      rows.push_back({.race = s.race,
                      .run = run.id(),
                      .prompt = s.place.prompt,
                      .lane = s.lane,
                      .prompt_id = s.prompt_id,
                      .task = s.place.task,
                      .decoder = s.decoder});
      speedups.emplace_back();
    }
    if (!run.finished || run.failed || run.was_stopped()) continue;
    add(rows[at->second], run);
    const KnownSpeedup speedup = speedup_of(timeline, run, known);
    if (speedup.value) speedups[at->second].push_back(*speedup.value);
    if (!speedup.why_no.empty()) rows[at->second].why_no_speedup = speedup.why_no;
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!speedups[i].empty()) rows[i].speedup = engine::spread_of(std::move(speedups[i])).median;
  // Lanes that do not take turns may run in another order.
  std::ranges::stable_sort(rows, {},
                           [](const PromptResult& row) { return std::pair(row.prompt, row.lane); });
  return rows;
}

std::vector<TaskResult> task_results(const std::vector<PromptResult>& prompts) {
  std::vector<TaskSum> sums, all;
  const auto sum_of = [](std::vector<TaskSum>& among, const PromptResult& row,
                         const std::string& task) -> TaskSum& {
    const auto is_its = [&](const TaskSum& sum) {
      return sum.result.task == task && sum.result.lane == row.lane;
    };
    auto found = std::ranges::find_if(among, is_its);
    if (found == among.end()) found = among.insert(among.end(), {.result = task_of(row, task)});
    return *found;
  };
  for (const PromptResult& row : prompts) {
    sum_of(sums, row, row.task).add(row);
    sum_of(all, row, "all").add(row);
  }
  if (sums.size() > all.size()) sums.insert(sums.end(), all.begin(), all.end());
  std::vector<TaskResult> results;
  for (TaskSum& sum : sums) results.push_back(sum.take());
  return results;
}

void sort_results(std::vector<PromptResult>& rows, ResultColumn by, bool descending) {
  using Row = PromptResult;
  if (by == ResultColumn::Name)
    sort_by(rows, descending, [](const Row& row) { return std::optional(row.prompt); });
  else if (by == ResultColumn::Difference)
    sort_by(rows, descending, [](const Row& row) {
      return row.is_compared ? std::optional(row.first_difference) : std::nullopt;
    });
  else
    sort_by_figure(rows, by, descending);
}

void sort_results(std::vector<TaskResult>& rows, ResultColumn by, bool descending) {
  if (by == ResultColumn::Difference)
    sort_by(rows, descending,
            [](const TaskResult& row) { return ratio(row.n_identical, row.n_compared); });
  else
    sort_by_figure(rows, by, descending);
}

std::vector<ScatterLane> scatter_of(const std::vector<PromptResult>& prompts) {
  std::map<int, ScatterLane> lanes;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const PromptResult& row = prompts[i];
    const auto acceptance = row.acceptance();
    if (!acceptance || !row.speedup) continue;
    ScatterLane& lane = lanes[row.lane];
    lane.lane = row.lane, lane.decoder = row.decoder;
    lane.acceptance_percent.push_back(100 * *acceptance);
    lane.speedup.push_back(*row.speedup);
    lane.rows.push_back(i);
  }
  std::vector<ScatterLane> list;
  for (auto& [number, lane] : lanes) list.push_back(std::move(lane));
  return list;
}

std::string speedup_words(const PromptResult& row) {
  return words_of_speedup(row);
}

std::string speedup_words(const TaskResult& row) {
  return words_of_speedup(row);
}

std::string difference_words(const PromptResult& row) {
  if (!row.is_compared) return "-";
  return row.first_difference < 0 ? "identical"
                                  : fmt::format("differs at {}", row.first_difference);
}

std::string difference_words(const TaskResult& row) {
  return row.n_compared > 0 ? fmt::format("{} of {}", row.n_identical, row.n_compared) : "-";
}

}  // namespace ui
