#include "engine/reason/reveal.h"

#include <optional>

namespace engine {
namespace {

RevealRun run_of(const CotReport& report) {
  RevealRun run{.n_correct = report.n_correct(), .seconds = report.seconds()};
  for (const CotItem& item : report.items) {
    run.n_steps += item.n_steps;
    run.n_approximate += item.n_approximate;
    run.n_rows += item.counts.at("rows");
  }
  return run;
}

}  // namespace

std::vector<RevealPoint> reveal_curve(Scheduler& scheduler,
                                      const Model& model,
                                      std::span<const Question> questions,
                                      CotSettings settings,
                                      std::span<const int> limits,
                                      const std::function<bool(const RevealPoint&)>& on_point,
                                      const SchedulerWatch& watch) {
  settings.options.try_emplace("window", "10");  // the paper's, also for whole rationales
  if (settings.n_shots < 0) settings.n_shots = shots_that_fit(model, settings, questions);
  const auto run = [&](const CotSettings& with) -> std::optional<RevealRun> {
    const CotReport report = answer(scheduler, model, questions, with, watch);
    if (!report.complete) return std::nullopt;
    return run_of(report);
  };
  std::vector<int> all(limits.begin(), limits.end());
  all.push_back(0);
  std::vector<RevealPoint> points;
  for (const int limit : all) {
    CotSettings truncated = settings, fastcot = settings;
    truncated.decoder = "ar";
    truncated.options = {};
    if (limit > 0) truncated.max_tokens = limit;
    fastcot.options["stop"] = limit > 0 ? "bound" : "none";
    if (limit > 0) fastcot.options["bound"] = std::to_string(limit);
    const auto cut = run(truncated);
    if (!cut) break;
    const auto guessed = run(fastcot);
    if (!guessed) break;
    points.push_back({limit, *cut, *guessed});
    if (on_point && !on_point(points.back())) break;
  }
  return points;
}

}  // namespace engine
