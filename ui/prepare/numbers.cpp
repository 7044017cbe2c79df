#include "ui/prepare/numbers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/event/timeline/proposals.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/run_times.h"
#include "ui/prepare/tokens/verdicts.h"

namespace ui {
namespace {

using engine::RowFate;

std::string ratio(double a, double b, const char* format) {
  return b > 0 ? fmt::format(fmt::runtime(format), a / b) : "-";
}

Figure no_speedup(std::string why) {
  return {"speed-up",
          "-",
          "compute of plain decoding / compute of this run, same prompt and settings, both "
          "measured in one session",
          std::move(why),
          Truth::Derived,
          StepSet::All};
}

Figure speedup_of(const engine::Timeline& timeline,
                  const engine::RunRecord& run,
                  const StepRange& range) {
  Figure f = no_speedup("plain decoding of this prompt has not finished here");
  if (run.started.decoder == "ar") f.numbers = "this is the baseline";
  if (range.first > 0) return speedup_of_part();
  if (!run.queueing.empty())
    f.numbers =
        "the run shared the models with other sequences: compare and generate report the speed of "
        "all of them together";
  const auto speedup = timeline.speedup(run);
  std::string why = run.over() && run.queueing.empty() ? timeline.why_other_load(run) : "";
  if ((!speedup && why.empty()) || run.started.decoder == "ar") return f;
  const engine::RunRecord& baseline = *timeline.baseline_of(run);
  f.label = fmt::format("speed-up vs run {}", baseline.id());
  if (range.size() == 0) {
    f.numbers = "no step yet";
    return f;
  }
  if (run.over() && range.end < run.steps.size()) {
    f.numbers = "both runs as a whole are compared: move the playhead to the end";
    return f;
  }
  if (!speedup) {
    f.numbers = std::move(why);
    return f;
  }
  f.value = fmt::format("{:.2f}x", *speedup);
  const double own = static_cast<double>(run.decode_compute());
  f.numbers =
      fmt::format("{} of run {} / {}", short_time(own * *speedup), baseline.id(), short_time(own));
  return f;
}

// Returns the own compute of each step of a range, ms.
std::vector<float> ms_of(const RunTimes& times, const StepRange& range) {
  std::vector<float> ms;
  ms.reserve(range.size());
  for (std::size_t i = range.first; i < range.end; ++i)
    ms.push_back(static_cast<float>((times.steps[i].compute1 - times.steps[i].compute0) / 1e6));
  return ms;
}

Figure median_of(const RunTimes& times, const StepRange& range) {
  Figure f{"step, median", "-", "median of the own compute per step", "no step yet", Truth::Derived,
           StepSet::Median};
  const std::size_t n_steps = range.size();
  if (n_steps == 0) return f;
  std::vector<float> ms = ms_of(times, range);
  std::nth_element(ms.begin(), ms.begin() + n_steps / 2, ms.end());
  const float p50 = ms[n_steps / 2];
  std::nth_element(ms.begin(), ms.begin() + n_steps * 95 / 100, ms.end());
  f.value = short_time(p50 * 1e6);
  f.numbers = fmt::format("{} steps; 95 % take at most {}", n_steps,
                          short_time(ms[n_steps * 95 / 100] * 1e6));
  return f;
}

// Adds the time to the run's first token, unless the token was committed before the range.
void add_time_to_first_token(Numbers& numbers,
                             const engine::RunRecord& run,
                             const RunTimes& times,
                             const StepRange& range) {
  if (times.sums(range.first).tokens > 0) return;
  double first = -1;
  for (std::size_t i = range.first; i < range.end && first < 0; ++i)
    if (times.steps[i].n_tokens > 0)
      first = static_cast<double>(run.steps[i].committed.t - run.started.t);
  numbers.more.push_back({"time to first token", first >= 0 ? short_time(first) : "-",
                          "first commit - start of the run, wall time",
                          first >= 0 ? fmt::format("{:.0f} ns", first) : "nothing committed yet",
                          Truth::Measured, StepSet::First});
}

void add_more(Numbers& numbers,
              const engine::RunRecord& run,
              const RunTimes& times,
              const StepRange& range) {
  const StepSums sums = times.sums(range);
  const std::size_t n_steps = range.size();
  const double verified = static_cast<double>(sums.accepted + sums.rejected);
  auto& more = numbers.more;
  more.push_back({"acceptance rate",
                  sums.proposed > 0 ? percent(double(sums.accepted) / double(sums.proposed)) : "-",
                  "accepted / proposed; the others were rejected or not verified",
                  fmt::format("{} / {}", sums.accepted, sums.proposed), Truth::Derived,
                  StepSet::Proposed});
  more.push_back({"accepted of verified",
                  verified > 0 ? percent(double(sums.accepted) / verified) : "-",
                  "accepted / (accepted + rejected); some papers call this the acceptance rate",
                  fmt::format("{} / ({} + {})", sums.accepted, sums.accepted, sums.rejected),
                  Truth::Derived, StepSet::Verified});
  const double wasted = static_cast<double>(std::max<std::int64_t>(0, sums.rows - sums.tokens));
  more.push_back(
      {"waste",
       sums.rows > 0
           ? fmt::format("{} of rows \xC2\xB7 {} / step", percent(wasted / double(sums.rows)),
                         n_steps ? short_time(sums.waste / double(n_steps)) : "-")
           : "-",
       "(rows computed - tokens committed) / rows computed; the time is this share of each forward",
       fmt::format("({} - {}) / {}", sums.rows, sums.tokens, sums.rows), Truth::Derived,
       StepSet::Wasted});
  more.push_back({"rows / step", ratio(double(sums.rows), double(n_steps), "{:.1f}"),
                  "rows computed / steps", fmt::format("{} / {}", sums.rows, n_steps),
                  Truth::Derived, StepSet::All});
  add_time_to_first_token(numbers, run, times, range);
  more.push_back({"tokens, steps",
                  fmt::format("{}, {}", with_commas(sums.tokens), with_commas(n_steps)),
                  "committed tokens, forward passes of the target",
                  fmt::format("{}, {}", sums.tokens, n_steps), Truth::Measured, StepSet::All});
}

// Adds FastCoT's counts of right guesses, which are of the whole run. They compare windows with the complete text, so they exist only after the
// run has ended.
void add_window_hits(Numbers& numbers, const engine::RunRecord& run) {
  if (!run.finished) return;
  const auto& metrics = run.finished->metrics;
  if (!metrics.contains("window_slots")) return;
  const auto add = [&](const char* label, const char* part, const char* whole,
                       const char* formula) {
    const auto a = metrics.find(part), b = metrics.find(whole);
    if (a == metrics.end() || b == metrics.end()) return;
    numbers.more.push_back({label, b->second > 0 ? percent(a->second / b->second) : "-", formula,
                            fmt::format("{:.0f} / {:.0f}", a->second, b->second), Truth::Hindsight,
                            StepSet::All});
  };
  add("first guess right", "first_hits", "windows",
      "FH: windows whose first guess equals the token of the text at its position / windows, over "
      "the whole run");
  add("guesses right in place", "token_hits", "window_slots",
      "TH: guesses equal to the token of the text at their position / guessed positions within the "
      "text");
  add("guesses in the text", "guesses_in_text", "window_slots",
      "TO(PD*/AD): guesses that occur anywhere in the text at the positions of their window / "
      "these positions");
  add("text guessed", "text_in_guesses", "window_slots",
      "TO(AD/PD*): tokens of that text that the window guessed at any position / these positions");
}

// Adds the expected and the actual tokens and times of the sizes that the decoder chose, over the whole run.
void add_chosen_sizes(Numbers& numbers, const engine::RunRecord& run) {
  if (!run.finished || !run.finished->metrics.contains("sized_steps")) return;
  const auto value = [&run](const char* name) {
    const auto found = run.finished->metrics.find(name);
    return found == run.finished->metrics.end() ? 0.0 : found->second;
  };
  numbers.more.push_back(
      {"chosen sizes", fmt::format("{:.2f} / step", value("sized_tokens")),
       "tokens of the steps whose size was chosen / these steps",
       fmt::format(
           "expected {:.2f} tokens in {:.3g} ms, took {:.3g} ms; a plain step {:.3g} ms; {:.0f} of "
           "{:.0f} steps without guesses, {:.0f} to learn",
           value("sized_tokens_expected"), value("sized_expected_ms"), value("sized_ms"),
           value("plain_expected_ms"), value("plain_steps"), value("sized_steps"),
           value("probe_steps")),
       Truth::Derived, StepSet::All});
}

double own_of(const StepSpan& s) {
  return s.compute1 - s.compute0;
}

// Returns the median of median_of(), ms.
float median_ms(const RunTimes& times, const StepRange& range) {
  std::vector<float> ms = ms_of(times, range);
  const auto middle = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2);
  std::nth_element(ms.begin(), middle, ms.end());
  return *middle;
}

int bin_of(double ms, const StepHistogram& histogram) {
  const auto n = static_cast<int>(histogram.count.size());
  return std::min(n - 1, static_cast<int>(ms / histogram.top_ms * n));
}

template <class Wanted>
std::vector<engine::StepId> steps_where(const RunTimes& times,
                                        StepRange range,
                                        const Wanted& wanted) {
  std::vector<engine::StepId> steps;
  range = range.within(times.steps.size());
  for (std::size_t i = range.first; i < range.end; ++i)
    if (wanted(i, times.steps[i])) steps.push_back(times.steps[i].step);
  return steps;
}

}  // namespace

const char* step_set_words(StepSet set) {
  static constexpr const char* kWords[] = {"",
                                           "are all steps shown",
                                           "proposed tokens",
                                           "verified a proposal",
                                           "computed rows without a committed token",
                                           "committed the first token",
                                           "took as long as the median step"};
  return kWords[static_cast<int>(set)];
}

std::vector<engine::StepId> steps_in_set(const RunTimes& times, StepRange range, StepSet set) {
  range = range.within(times.steps.size());
  if (set == StepSet::None || range.size() == 0) return {};
  const float median = set == StepSet::Median ? median_ms(times, range) : 0;
  std::vector<engine::StepId> steps =
      steps_where(times, range, [&](std::size_t i, const StepSpan& s) {
        const StepSums &before = times.sums(i), &after = times.sums(i + 1);
        switch (set) {
          case StepSet::Proposed:
            return after.proposed > before.proposed;
          case StepSet::Verified:
            return after.accepted + after.rejected > before.accepted + before.rejected;
          case StepSet::Wasted:
            return s.wasted > 0;
          case StepSet::First:
            return before.tokens == 0 && s.n_tokens > 0;
          case StepSet::Median:
            return std::abs(own_of(s) / 1e6 - median) <= 0.01 * median;
          case StepSet::All:
          case StepSet::None:
            break;
        }
        return true;
      });
  return steps;
}

std::vector<engine::StepId> steps_that_committed(const RunTimes& times,
                                                 StepRange range,
                                                 int n_tokens) {
  return steps_where(times, range,
                     [n_tokens](std::size_t, const StepSpan& s) { return s.n_tokens == n_tokens; });
}

std::vector<engine::StepId> steps_verifying(const engine::RunRecord& run,
                                            StepRange range,
                                            int place) {
  std::vector<engine::StepId> steps;
  range = range.within(run.steps.size());
  for (std::size_t i = range.first; i < range.end; ++i) {
    const engine::StepRecord step = run.steps[i];
    const engine::TokenTree& tree = step.drafted.tree;
    const auto n = std::min<int>(tree.n_rows(), static_cast<int>(step.verified.fate.size()));
    for (int row = 0; row < n; ++row) {
      const RowFate fate = step.verified.fate[row];
      if ((fate != RowFate::Accepted && fate != RowFate::Rejected) || depth_of(tree, row) != place)
        continue;
      steps.push_back(step.begun.step);
      break;
    }
  }
  return steps;
}

std::vector<engine::StepId> steps_without_acceptance(const RunTimes& times, StepRange range) {
  std::vector<engine::StepId> steps;
  if (times.total.proposed == 0) return steps;
  range = range.within(times.steps.size());
  for (std::size_t i = range.end; i > range.first && steps.size() < kStepsWithoutAcceptance; --i) {
    const StepSpan& step = times.steps[i - 1];
    if (step.n_accepted > 0) return {};
    if (step.n_proposed > 0) steps.push_back(step.step);
  }
  if (steps.size() < kStepsWithoutAcceptance) return {};
  std::reverse(steps.begin(), steps.end());
  return steps;
}

namespace {

void add_size(TallyCounts& tally, const engine::StepRecord& step) {
  if (!step.drafted.decision.is_chosen() || !step.complete) return;
  const engine::SizeDecision& chosen = step.drafted.decision;
  const engine::StepEnded& e = step.ended;
  SizeTally& of = tally.by_size[chosen.size];
  ++of.n_steps;
  of.n_probes += chosen.probe;
  of.expected_tokens += chosen.tokens;
  of.expected_ms += chosen.ms;
  of.tokens += static_cast<double>(step.committed.tokens.size());
  of.ms += static_cast<double>(e.propose + e.forward + e.verify + e.commit) * 1e-6;
}

void add_step(TallyCounts& tally, const engine::StepRecord& step) {
  add_size(tally, step);
  const std::size_t kept = step.committed.tokens.size();
  if (tally.committed.size() <= kept) tally.committed.resize(kept + 1);
  ++tally.committed[kept];
  const engine::TokenTree& tree = step.drafted.tree;
  for (int i = 0; i < tree.n_rows() && i < static_cast<int>(step.verified.fate.size()); ++i) {
    const RowFate fate = step.verified.fate[i];
    if (fate != RowFate::Accepted && fate != RowFate::Rejected) continue;
    const int place = depth_of(tree, i);
    if (place < 1) continue;
    if (tally.by_place.size() < static_cast<std::size_t>(place)) tally.by_place.resize(place);
    AcceptanceAt& at = tally.by_place[place - 1];
    ++at.verified;
    at.accepted += fate == RowFate::Accepted;
  }
}

}  // namespace

std::vector<engine::StepId> steps_of_size(const engine::RunRecord& run,
                                          StepRange range,
                                          int smallest,
                                          int largest) {
  std::vector<engine::StepId> steps;
  range = range.within(run.steps.size());
  for (std::size_t i = range.first; i < range.end; ++i) {
    const engine::StepRecord step = run.steps[i];
    const int size = step.drafted.decision.size;
    if (step.drafted.decision.is_chosen() && size >= smallest && size <= largest)
      steps.push_back(step.begun.step);
  }
  return steps;
}

std::vector<SizeRow> size_table(const Tally& tally, std::size_t n_rows) {
  int n_left = 0;  // steps with guesses that are not in a row yet
  for (const auto& [size, of] : tally.by_size) n_left += size > 0 ? of.n_steps : 0;
  std::size_t n_rows_left = n_rows - 1, n_sizes_left = tally.by_size.size();
  std::vector<SizeRow> rows;
  bool is_open = false;  // further sizes are added to the last row
  for (const auto& [size, of] : tally.by_size) {
    if (!is_open) rows.push_back({.smallest = size});
    SizeRow& row = rows.back();
    row.largest = size;
    row.n_steps += of.n_steps, row.n_probes += of.n_probes;
    row.expected_tokens += of.expected_tokens, row.tokens += of.tokens;
    row.expected_ms += of.expected_ms, row.ms += of.ms;
    --n_sizes_left;
    const bool has_enough =
        n_sizes_left < n_rows_left || row.n_steps * static_cast<int>(n_rows_left) >= n_left;
    is_open = size > 0 && !(has_enough && n_rows_left > 1);
    if (size > 0 && !is_open) n_left -= row.n_steps, --n_rows_left;
  }
  for (SizeRow& row : rows) {
    const double n = std::max(row.n_steps, 1);
    row.expected_tokens /= n, row.tokens /= n, row.expected_ms /= n, row.ms /= n;
  }
  return rows;
}

void advance(Tally& tally, const engine::RunRecord& run, StepRange range) {
  range = range.within(run.steps.size());
  if (tally.run != run.id() || range.first != tally.first) {
    tally = {};
    tally.run = run.id();
    tally.first = tally.n_steps = range.first;
  }
  const std::size_t n_kept = std::min(range.size() / Tally::kKeptEvery, tally.kept.size());
  const std::size_t at = tally.first + n_kept * Tally::kKeptEvery;
  if (range.end < tally.n_steps || at > tally.n_steps) {
    static_cast<TallyCounts&>(tally) = n_kept > 0 ? tally.kept[n_kept - 1] : TallyCounts{};
    tally.n_steps = at;
  }
  while (tally.n_steps < range.end) {
    add_step(tally, run.steps[tally.n_steps]);
    ++tally.n_steps;
    const std::size_t n = tally.n_steps - tally.first;
    if (n % Tally::kKeptEvery == 0 && n / Tally::kKeptEvery > tally.kept.size())
      tally.kept.push_back(tally);
  }
}

Figure speedup_of_part() {
  return no_speedup("of a whole run only; the figures cover a part of this one");
}

Numbers numbers_of(const engine::Timeline& timeline,
                   const engine::RunRecord& run,
                   const RunTimes& times,
                   StepRange range) {
  range = range.within(times.steps.size());
  const std::size_t n_steps = range.size();
  const StepSums sums = times.sums(range);
  Numbers numbers;
  numbers.tokens_per_second = {
      "tokens / s",
      sums.compute > 0 ? short_number(double(sums.tokens) / (sums.compute / 1e9)) : "-",
      "committed tokens / own compute of the steps, without prefill",
      fmt::format("{} / {}", sums.tokens, short_time(sums.compute)),
      Truth::Derived,
      StepSet::All};
  numbers.tokens_per_step = {"tokens / step",
                             ratio(double(sums.tokens), double(n_steps), "{:.2f}"),
                             "committed tokens / steps, bonus tokens included",
                             fmt::format("{} / {}", sums.tokens, n_steps),
                             Truth::Derived,
                             StepSet::All};
  numbers.speedup = speedup_of(timeline, run, range);
  numbers.step_median = median_of(times, range);
  add_more(numbers, run, times, range);
  if (range == StepRange(run.steps.size())) {
    add_window_hits(numbers, run);
    add_chosen_sizes(numbers, run);
  }
  return numbers;
}

std::vector<float> series_of(const RunTimes& times, StepRange range, Series series, std::size_t n) {
  std::vector<float> values;
  range = range.within(times.steps.size());
  for (std::size_t i = range.size() > n ? range.end - n : range.first; i < range.end; ++i) {
    const StepSpan& s = times.steps[i];
    const double own = s.compute1 - s.compute0;
    if (series == Series::StepMs) values.push_back(static_cast<float>(own / 1e6));
    if (series == Series::TokensPerStep) values.push_back(static_cast<float>(s.n_tokens));
    if (series == Series::WasteShare) values.push_back(s.wasted);
    if (series == Series::TokensPerSecond) {
      const StepSums& from = times.sums(i >= 7 ? i - 7 : 0);
      const StepSums& to = times.sums(i + 1);
      values.push_back(static_cast<float>(double(to.tokens - from.tokens) /
                                          ((to.compute - from.compute) / 1e9)));
    }
  }
  return values;
}

StepHistogram step_histogram(const RunTimes& times, StepRange range, int n_bins) {
  StepHistogram h;
  range = range.within(times.steps.size());
  const std::size_t n_steps = range.size();
  if (n_steps == 0 || n_bins < 1) return h;
  std::vector<double> ms;
  for (std::size_t i = range.first; i < range.end; ++i)
    ms.push_back((times.steps[i].compute1 - times.steps[i].compute0) / 1e6);
  std::vector<double> sorted = ms;
  std::nth_element(sorted.begin(), sorted.begin() + (n_steps - 1) * 99 / 100, sorted.end());
  h.top_ms = std::max(1e-6, sorted[(n_steps - 1) * 99 / 100] * 1.25);
  h.count.resize(n_bins);
  for (const double v : ms) ++h.count[bin_of(v, h)];
  return h;
}

std::vector<engine::StepId> steps_in_bin(const RunTimes& times,
                                         StepRange range,
                                         const StepHistogram& histogram,
                                         int bin) {
  return steps_where(times, range, [&](std::size_t, const StepSpan& s) {
    return bin_of(own_of(s) / 1e6, histogram) == bin;
  });
}

}  // namespace ui
