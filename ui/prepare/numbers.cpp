#include "ui/prepare/numbers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ui {
namespace {

using engine::RowFate;
using engine::RowTag;

// Distance of a proposed row behind the prefix: 1 is the token right behind it.
int place_of(const engine::TokenTree& tree, int row) {
  int place = 0;
  for (int i = row; i >= 0; i = tree.parent[i]) {
    if (tree.tag[i].kind == RowTag::Kind::Current) break;
    ++place;
  }
  return place;
}

std::string ratio(double a, double b, const char* format) {
  return b > 0 ? fmt::format(fmt::runtime(format), a / b) : "-";
}

Figure speedup_of(const engine::Timeline& timeline, const engine::RunRecord& run) {
  Figure f{"speedup, measured",
           "-",
           "compute of plain decoding / compute of this run, same prompt and settings, both "
           "measured in one session",
           "no finished AR run of this prompt here",
           Truth::Derived,
           Behind::All};
  if (run.started.decoder == "ar") f.numbers = "this is the baseline";
  if (!run.queueing.empty())
    f.numbers = "it took turns with other texts: compare and generate tell that of all together";
  const auto speedup = timeline.speedup(run);
  if (!speedup || run.started.decoder == "ar") return f;
  f.value = fmt::format("{:.2f}x", *speedup);
  const double own = static_cast<double>(run.decode_compute());
  f.numbers = fmt::format("{} / {}", short_time(own * *speedup), short_time(own));
  return f;
}

Figure median_of(const RunTimes& times, std::size_t n_steps) {
  Figure f{"step, median", "-",           "median of the steps' own compute", "no step yet",
           Truth::Derived, Behind::Median};
  if (n_steps == 0) return f;
  std::vector<float> ms(n_steps);
  for (std::size_t i = 0; i < n_steps; ++i)
    ms[i] = static_cast<float>((times.steps[i].compute1 - times.steps[i].compute0) / 1e6);
  std::nth_element(ms.begin(), ms.begin() + n_steps / 2, ms.end());
  const float p50 = ms[n_steps / 2];
  std::nth_element(ms.begin(), ms.begin() + n_steps * 95 / 100, ms.end());
  f.value = short_time(p50 * 1e6);
  f.numbers =
      fmt::format("{} steps; 95 % within {}", n_steps, short_time(ms[n_steps * 95 / 100] * 1e6));
  return f;
}

double time_to_first_token(const engine::RunRecord& run) {
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    if (run.steps.head(i).n_tokens > 0)
      return static_cast<double>(run.steps[i].committed.t - run.started.t);
  return -1;
}

void add_more(Numbers& numbers,
              const engine::RunRecord& run,
              const StepSums& sums,
              std::size_t n_steps) {
  const double judged = static_cast<double>(sums.accepted + sums.rejected);
  auto& more = numbers.more;
  more.push_back(
      {"acceptance rate", sums.proposed > 0 ? percent(double(sums.accepted) / sums.proposed) : "-",
       "accepted / proposed; the rest was rejected or never judged",
       fmt::format("{} / {}", sums.accepted, sums.proposed), Truth::Derived, Behind::Proposed});
  more.push_back({"accepted of judged", judged > 0 ? percent(sums.accepted / judged) : "-",
                  "accepted / (accepted + rejected); others call this the acceptance rate",
                  fmt::format("{} / ({} + {})", sums.accepted, sums.accepted, sums.rejected),
                  Truth::Derived, Behind::VerifiedNode});
  const double wasted = static_cast<double>(std::max<std::int64_t>(0, sums.rows - sums.tokens));
  more.push_back({"waste",
                  sums.rows > 0
                      ? fmt::format("{} of rows \xC2\xB7 {} / step", percent(wasted / sums.rows),
                                    n_steps ? short_time(sums.waste / n_steps) : "-")
                      : "-",
                  "(rows computed - tokens committed) / rows computed",
                  fmt::format("({} - {}) / {}", sums.rows, sums.tokens, sums.rows), Truth::Derived,
                  Behind::Wasted});
  more.push_back({"rows / step", ratio(double(sums.rows), double(n_steps), "{:.1f}"),
                  "rows computed / steps", fmt::format("{} / {}", sums.rows, n_steps),
                  Truth::Derived, Behind::All});
  const double first = time_to_first_token(run);
  more.push_back({"time to first token", first >= 0 ? short_time(first) : "-",
                  "first commit - start of the run, wall time",
                  first >= 0 ? fmt::format("{:.0f} ns", first) : "nothing committed yet",
                  Truth::Measured, Behind::First});
  more.push_back({"tokens, steps",
                  fmt::format("{}, {}", with_commas(sums.tokens), with_commas(n_steps)),
                  "committed tokens, forward passes of the target",
                  fmt::format("{}, {}", sums.tokens, n_steps), Truth::Measured, Behind::All});
}

// FastCoT's counts of what its windows foresaw, which hold them against the whole text: known when
// the run has ended.
void add_foreseen(Numbers& numbers, const engine::RunRecord& run) {
  if (!run.finished) return;
  const auto& metrics = run.finished->metrics;
  if (!metrics.contains("window_slots")) return;
  const auto add = [&](const char* label, const char* part, const char* whole,
                       const char* formula) {
    const auto a = metrics.find(part), b = metrics.find(whole);
    if (a == metrics.end() || b == metrics.end()) return;
    numbers.more.push_back({label, b->second > 0 ? percent(a->second / b->second) : "-", formula,
                            fmt::format("{:.0f} / {:.0f}", a->second, b->second), Truth::Hindsight,
                            Behind::All});
  };
  add("first guess right", "first_hits", "windows",
      "FH: windows whose first guess is the text's token there / windows, of the whole run");
  add("guesses right in place", "token_hits", "window_slots",
      "TH: guesses that are the text's token in their place / their places inside the text");
  add("guesses in the text", "guesses_in_text", "window_slots",
      "TO(PD*/AD): guesses that stand anywhere in the text of their window's places / those "
      "places");
  add("text guessed", "text_in_guesses", "window_slots",
      "TO(AD/PD*): tokens of that text that their window guessed in any place / those places");
}

double own_of(const StepSpan& s) {
  return s.compute1 - s.compute0;
}

// As median_of takes it.
float median_ms(const RunTimes& times, std::size_t n_steps) {
  std::vector<float> ms(n_steps);
  for (std::size_t i = 0; i < n_steps; ++i)
    ms[i] = static_cast<float>(own_of(times.steps[i]) / 1e6);
  std::nth_element(ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(n_steps / 2), ms.end());
  return ms[n_steps / 2];
}

int bin_of(double ms, const StepHistogram& histogram) {
  const auto n = static_cast<int>(histogram.count.size());
  return std::min(n - 1, static_cast<int>(ms / histogram.top_ms * n));
}

template <class Wanted>
std::vector<engine::StepId> steps_where(const RunTimes& times,
                                        std::size_t n_steps,
                                        const Wanted& wanted) {
  std::vector<engine::StepId> steps;
  for (std::size_t i = 0; i < std::min(n_steps, times.steps.size()); ++i)
    if (wanted(i, times.steps[i])) steps.push_back(times.steps[i].step);
  return steps;
}

}  // namespace

const char* truth_mark(Truth truth) {
  switch (truth) {
    case Truth::Measured:
      return "";
    case Truth::Derived:
      return "d";
    case Truth::Hindsight:
      return "h";
    case Truth::Simulated:
      break;
  }
  return "s";
}

const char* truth_words(Truth truth) {
  switch (truth) {
    case Truth::Measured:
      return "measured";
    case Truth::Derived:
      return "d: derived from measured figures";
    case Truth::Hindsight:
      return "h: known in hindsight only";
    case Truth::Simulated:
      break;
  }
  return "s: simulated with given times; nothing of it was measured";
}

const char* behind_words(Behind behind) {
  static constexpr const char* kWords[] = {"",
                                           "are all there are",
                                           "proposed something",
                                           "had a proposal judged",
                                           "threw rows away",
                                           "committed first",
                                           "took as long as the median"};
  return kWords[static_cast<int>(behind)];
}

std::vector<engine::StepId> steps_behind(const RunTimes& times,
                                         std::size_t n_steps,
                                         Behind behind) {
  n_steps = std::min(n_steps, times.steps.size());
  if (behind == Behind::None || n_steps == 0) return {};
  const float median = behind == Behind::Median ? median_ms(times, n_steps) : 0;
  std::vector<engine::StepId> steps =
      steps_where(times, n_steps, [&](std::size_t i, const StepSpan& s) {
        const StepSums &before = times.sums(i), &after = times.sums(i + 1);
        switch (behind) {
          case Behind::Proposed:
            return after.proposed > before.proposed;
          case Behind::VerifiedNode:
            return after.accepted + after.rejected > before.accepted + before.rejected;
          case Behind::Wasted:
            return s.wasted > 0;
          case Behind::First:
            return before.tokens == 0 && s.n_tokens > 0;
          case Behind::Median:
            return std::abs(own_of(s) / 1e6 - median) <= 0.01 * median;
          case Behind::All:
          case Behind::None:
            break;
        }
        return true;
      });
  return steps;
}

std::vector<engine::StepId> steps_that_brought(const RunTimes& times,
                                               std::size_t n_steps,
                                               int n_tokens) {
  return steps_where(times, n_steps,
                     [n_tokens](std::size_t, const StepSpan& s) { return s.n_tokens == n_tokens; });
}

std::vector<engine::StepId> steps_judging(const engine::RunRecord& run,
                                          std::size_t n_steps,
                                          int place) {
  std::vector<engine::StepId> steps;
  for (std::size_t i = 0; i < std::min(n_steps, run.steps.size()); ++i) {
    const engine::StepRecord step = run.steps[i];
    const engine::TokenTree& tree = step.drafted.tree;
    const auto n = std::min<int>(tree.n_rows(), static_cast<int>(step.verified.fate.size()));
    for (int row = 0; row < n; ++row) {
      const RowFate fate = step.verified.fate[row];
      if ((fate != RowFate::Accepted && fate != RowFate::Rejected) || place_of(tree, row) != place)
        continue;
      steps.push_back(step.begun.step);
      break;
    }
  }
  return steps;
}

std::vector<engine::StepId> steps_in_vain(const RunTimes& times, std::size_t n_steps) {
  std::vector<engine::StepId> steps;
  if (times.total.proposed == 0) return steps;
  for (std::size_t i = std::min(n_steps, times.steps.size()); i > 0 && steps.size() < kVainSteps;
       --i) {
    const StepSpan& step = times.steps[i - 1];
    if (step.n_accepted > 0) return {};
    if (step.n_proposed > 0) steps.push_back(step.step);
  }
  if (steps.size() < kVainSteps) return {};
  std::reverse(steps.begin(), steps.end());
  return steps;
}

void advance(Tally& tally, const engine::RunRecord& run, std::size_t n_steps) {
  n_steps = std::min(n_steps, run.steps.size());
  if (tally.run != run.id() || n_steps < tally.n_steps) tally = Tally{.run = run.id()};
  for (; tally.n_steps < n_steps; ++tally.n_steps) {
    const engine::StepRecord& step = run.steps[tally.n_steps];
    const std::size_t kept = step.committed.tokens.size();
    if (tally.kept.size() <= kept) tally.kept.resize(kept + 1);
    ++tally.kept[kept];
    const engine::TokenTree& tree = step.drafted.tree;
    for (int i = 0; i < tree.n_rows() && i < static_cast<int>(step.verified.fate.size()); ++i) {
      const RowFate fate = step.verified.fate[i];
      if (fate != RowFate::Accepted && fate != RowFate::Rejected) continue;
      const int place = place_of(tree, i);
      if (place < 1) continue;
      if (tally.by_place.size() < static_cast<std::size_t>(place)) tally.by_place.resize(place);
      AcceptanceAt& at = tally.by_place[place - 1];
      ++at.judged;
      at.accepted += fate == RowFate::Accepted;
    }
  }
}

Numbers numbers_of(const engine::Timeline& timeline,
                   const engine::RunRecord& run,
                   const RunTimes& times,
                   std::size_t n_steps) {
  n_steps = std::min(n_steps, times.steps.size());
  const StepSums& sums = times.sums(n_steps);
  Numbers numbers;
  numbers.tokens_per_second = {
      "tokens / s",
      sums.compute > 0 ? short_number(sums.tokens / (sums.compute / 1e9)) : "-",
      "committed tokens / own compute of the steps; prefill apart",
      fmt::format("{} / {}", sums.tokens, short_time(sums.compute)),
      Truth::Derived,
      Behind::All};
  numbers.tokens_per_step = {"tokens / step",
                             ratio(double(sums.tokens), double(n_steps), "{:.2f}"),
                             "committed / steps, the bonus token included",
                             fmt::format("{} / {}", sums.tokens, n_steps),
                             Truth::Derived,
                             Behind::All};
  numbers.speedup = speedup_of(timeline, run);
  numbers.step_median = median_of(times, n_steps);
  add_more(numbers, run, sums, n_steps);
  add_foreseen(numbers, run);
  return numbers;
}

std::vector<float> series_of(const RunTimes& times,
                             std::size_t n_steps,
                             Series series,
                             std::size_t n) {
  std::vector<float> values;
  n_steps = std::min(n_steps, times.steps.size());
  for (std::size_t i = n_steps > n ? n_steps - n : 0; i < n_steps; ++i) {
    const StepSpan& s = times.steps[i];
    const double own = s.compute1 - s.compute0;
    if (series == Series::StepMs) values.push_back(static_cast<float>(own / 1e6));
    if (series == Series::TokensPerStep) values.push_back(static_cast<float>(s.n_tokens));
    if (series == Series::WasteShare) values.push_back(s.wasted);
    if (series == Series::TokensPerSecond) {
      const StepSums& from = times.sums(i >= 7 ? i - 7 : 0);
      const StepSums& to = times.sums(i + 1);
      values.push_back(
          static_cast<float>((to.tokens - from.tokens) / ((to.compute - from.compute) / 1e9)));
    }
  }
  return values;
}

StepHistogram step_histogram(const RunTimes& times, std::size_t n_steps, int n_bins) {
  StepHistogram h;
  n_steps = std::min(n_steps, times.steps.size());
  if (n_steps == 0 || n_bins < 1) return h;
  std::vector<double> ms(n_steps);
  for (std::size_t i = 0; i < n_steps; ++i)
    ms[i] = (times.steps[i].compute1 - times.steps[i].compute0) / 1e6;
  std::vector<double> sorted = ms;
  std::nth_element(sorted.begin(), sorted.begin() + (n_steps - 1) * 99 / 100, sorted.end());
  h.top_ms = std::max(1e-6, sorted[(n_steps - 1) * 99 / 100] * 1.25);
  h.count.resize(n_bins);
  for (const double v : ms) ++h.count[bin_of(v, h)];
  return h;
}

std::vector<engine::StepId> steps_in_bin(const RunTimes& times,
                                         std::size_t n_steps,
                                         const StepHistogram& histogram,
                                         int bin) {
  return steps_where(times, n_steps, [&](std::size_t, const StepSpan& s) {
    return bin_of(own_of(s) / 1e6, histogram) == bin;
  });
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  if (std::abs(value) >= 9999.5) return with_commas(std::llround(value));
  if (std::abs(value) >= 99.95) return fmt::format("{:.0f}", value);
  return fmt::format(fmt::runtime(std::abs(value) >= 9.995 ? "{:.1f}" : "{:.2f}"), value);
}

std::string short_time(double ns) {
  if (!std::isfinite(ns)) return "-";
  const double size = std::abs(ns);
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  const double unit = size < 999.5e3 ? 1e3 : size < 999.5e6 ? 1e6 : 1e9;
  const char* name = unit == 1e3 ? "us" : unit == 1e6 ? "ms" : "s";
  const double v = ns / unit;
  return fmt::format(fmt::runtime(std::abs(v) >= 99.95   ? "{:.0f} {}"
                                  : std::abs(v) >= 9.995 ? "{:.1f} {}"
                                                         : "{:.2f} {}"),
                     v, name);
}

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return n < 0 ? "-" + digits : digits;
}

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.0f} %", share * 100) : "-";
}

}  // namespace ui
