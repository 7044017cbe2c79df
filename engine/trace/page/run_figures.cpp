#include "engine/trace/page/run_figures.h"

#include <optional>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/trace/describe.h"

namespace engine {
namespace {

/// A figure, or "-" if it is undefined.
std::string figure(bool is_defined, double value, const char* format) {
  return is_defined ? fmt::format(fmt::runtime(format), value) : "-";
}

}  // namespace

RunFigures figures_of(const Timeline& timeline, const RunRecord& run) {
  const ModelLoaded* model = timeline.model(run.started.model);
  const std::optional<double> speedup = timeline.speedup(run);
  const bool other_load = !speedup && !timeline.why_other_load(run).empty();
  return {.model = model ? printable(fmt::format("{} {}, {} on {}", model->name, model->dtype,
                                                 model->scale, model->device))
                         : "",
          .end = run.failed     ? "failed"
                 : run.finished ? ended_by(*run.finished)
                                : "not finished",
          .tokens_per_step = figure(run.totals.n_steps > 0, run.tokens_per_step(), "{:.2f}"),
          .tokens_per_second = figure(run.totals.compute > 0, run.tokens_per_second(), "{:.1f}"),
          .speedup =
              other_load ? kOtherLoad : figure(speedup.has_value(), speedup.value_or(0), "{:.2f}x"),
          .accepted = figure(run.n_proposed() > 0, 100 * run.acceptance_rate(), "{:.0f} %"),
          .identical = !run.agreement                         ? "-"
                       : run.agreement->first_difference >= 0 ? "no"
                                                              : "yes"};
}

std::string spread_text(const Spread& spread, const char* format) {
  if (spread.n == 0) return "-";
  const auto value = [&](double of) { return fmt::format(fmt::runtime(format), of); };
  return fmt::format("{} ({} to {})", value(spread.median), value(spread.q1), value(spread.q3));
}

}  // namespace engine
