#include "ui/prepare/lab/decisions.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/figure.h"

namespace ui {
namespace {

double ms_of(const engine::StepRecord& step) {
  const engine::StepEnded& e = step.ended;
  return static_cast<double>(e.propose + e.forward + e.verify + e.commit) * 1e-6;
}

void push(Curve& curve, double x, double y) {
  curve.x.push_back(x);
  curve.y.push_back(y);
}

bool differ(double expected, double measured, double factor) {
  return expected > 0 && std::max(expected, measured) > factor * std::min(expected, measured);
}

bool has_choice(const engine::StepRecord& step) {
  return step.drafted.decision.is_chosen() && step.complete;
}

}  // namespace

Decisions decisions_of(const engine::RunRecord& run) {
  Decisions all{.tokens = {{"expected tokens", {}, {}}, {"committed", {}, {}}},
                .ms = {{"expected ms", {}, {}}, {"measured", {}, {}}, {"plain step", {}, {}}},
                .size = {{"chosen size", {}, {}}}};
  for (const engine::StepRecord& step : run.steps) {
    if (!has_choice(step)) continue;
    const engine::SizeDecision& chosen = step.drafted.decision;
    const double x = step.begun.step;
    push(all.tokens[0], x, chosen.tokens);
    push(all.tokens[1], x, static_cast<double>(step.committed.tokens.size()));
    push(all.ms[0], x, chosen.ms);
    push(all.ms[1], x, ms_of(step));
    push(all.ms[2], x, chosen.plain_ms);
    push(all.size[0], x, chosen.size);
  }
  return all;
}

Missed missed_by(const engine::StepRecord& step) {
  if (!has_choice(step)) return {};
  const engine::SizeDecision& chosen = step.drafted.decision;
  return {.tokens = differ(chosen.tokens, static_cast<double>(step.committed.tokens.size()),
                           kMissedTokens),
          .time = differ(chosen.ms, ms_of(step), kMissedTime)};
}

std::vector<std::string> choice_labels(const engine::StepRecord& step) {
  if (!has_choice(step)) return {};
  const engine::SizeDecision& chosen = step.drafted.decision;
  const auto time = [](double ms) { return short_time(ms * 1e6); };
  const std::size_t n_tokens = step.committed.tokens.size();
  const std::string size = fmt::format("{}{}", missed_by(step).any() ? "! " : "", chosen.size);
  return {fmt::format("{}: {:.1f} tokens, {}; measured {}, {}", size, chosen.tokens,
                      time(chosen.ms), n_tokens, time(ms_of(step))),
          fmt::format("{}: {:.1f} tokens; measured {}", size, chosen.tokens, n_tokens), size};
}

std::string choice_words(const engine::RunRecord& run, std::size_t first, std::size_t last) {
  constexpr std::size_t kMost = 200;  // steps that are read for a tooltip
  int n = 0, n_probes = 0, n_missed_tokens = 0, n_missed_time = 0;
  double size = 0, expected_tokens = 0, tokens = 0, expected_ms = 0, ms = 0, plain_ms = 0;
  for (std::size_t i = first; i < std::min({last, run.steps.size(), first + kMost}); ++i) {
    const engine::StepRecord step = run.steps[i];
    const engine::SizeDecision& chosen = step.drafted.decision;
    if (!has_choice(step)) continue;
    ++n;
    const Missed missed = missed_by(step);
    n_missed_tokens += missed.tokens;
    n_missed_time += missed.time;
    n_probes += chosen.probe;
    size += chosen.size;
    expected_tokens += chosen.tokens;
    tokens += static_cast<double>(step.committed.tokens.size());
    expected_ms += chosen.ms;
    ms += ms_of(step);
    plain_ms += chosen.plain_ms;
  }
  if (n == 0) return "no size was chosen";
  const auto mean = [n](double sum) { return sum / n; };
  std::string text = n == 1 && size == 0 ? "no guesses: plain decoding"
                     : n == 1
                         ? fmt::format("size {:.0f}", size)
                         : fmt::format("mean of {}{} choices: size {:.1f}",
                                       last - first > kMost ? "the first " : "", n, mean(size));
  if (n_probes > 0)
    text += n == 1 ? ", to learn from it" : fmt::format(", {} of them to learn from", n_probes);
  text += fmt::format(
      "\nexpected {:.2f} tokens in {:.3g} ms, measured {:.3g} in {:.3g} ms; a plain step "
      "takes {:.3g} ms",
      mean(expected_tokens), mean(expected_ms), mean(tokens), mean(ms), mean(plain_ms));
  if (n_missed_tokens + n_missed_time == 0) return text;
  if (n > 1)
    return text + fmt::format("\n! missed the prediction: tokens of {}, time of {}",
                              engine::counted(n_missed_tokens, "step"), n_missed_time);
  const char* what = n_missed_time == 0 ? "tokens" : n_missed_tokens == 0 ? "time" : "tokens, time";
  return text + fmt::format("\n! missed the prediction: {}", what);
}

}  // namespace ui
