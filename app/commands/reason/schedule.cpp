#include "app/commands/reason/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/terminal.h"
#include "app/commands/report.h"
#include "app/commands/trace/recording.h"
#include "engine/base/table.h"
#include "engine/base/text.h"
#include "engine/seed/schedule_figures.h"

namespace app {
namespace {

using engine::FigureStages;
using engine::ScheduleFigure;
using engine::ScriptedLevels;
using Json = nlohmann::ordered_json;

constexpr double kDraftMs = 30, kVerifyMs = 10;  // of drawn sequences
constexpr std::int64_t kMostTokens = 4'000'000;  // of the sequences of one simulation
constexpr const char* kNoSchedule =
    ": found no tree of thoughts that seed decoded, expected a recording by `reason tot --decoder "
    "seed --record FILE`";

/// One line of each table: a recorded stage, or one probability of a right token.
struct Curve {
  std::string name;
  double right = -1;  // probability; -1: recorded texts
  FigureStages stages;
  double acceptance_rate = 0;
  std::vector<ScheduleFigure> by_branches;
};

engine::Nanoseconds ns_of(double ms) {
  return std::llround(ms * 1e6);
}
double ms_of(engine::Nanoseconds ns) {
  return static_cast<double>(ns) / 1e6;
}

/// The stages by the options, where a time that was not given is the default.
FigureStages stages_of(const ScheduleOptions& options,
                       engine::Nanoseconds draft,
                       engine::Nanoseconds verify) {
  FigureStages stages{.draft = options.draft_ms >= 0 ? ns_of(options.draft_ms) : draft,
                      .verify = options.verify_ms >= 0 ? ns_of(options.verify_ms) : verify};
  stages.step = options.step_ms >= 0 ? ns_of(options.step_ms) : stages.verify;
  return stages;
}

/// Simulates a curve. @param texts_for  the texts for a number of branches
Curve curve_of(Curve curve,
               const ScheduleOptions& options,
               const std::function<ScriptedLevels(int n_branches)>& texts_for) {
  std::int64_t n_proposed = 0, n_accepted = 0;
  for (const int n : options.branches) {
    if (interrupted())
      throw engine::Error(engine::ErrorCode::Cancelled, "reason schedule: cancelled");
    const ScriptedLevels texts = texts_for(n);
    n_proposed += texts.n_proposed;
    n_accepted += texts.n_accepted;
    curve.by_branches.push_back(schedule_figure(texts, curve.stages, n, options.n_drafters));
  }
  curve.acceptance_rate =
      ScriptedLevels{.n_proposed = n_proposed, .n_accepted = n_accepted}.acceptance_rate();
  return curve;
}

/// Bounds the memory and the time until the command reacts to Ctrl+C.
/// @throws Error(Usage)  if a simulation would have more than kMostTokens tokens
void check_size(const ScheduleOptions& options) {
  const int n_branches = std::ranges::max(options.branches);
  const std::int64_t n_tokens = std::int64_t{options.n_tokens} * options.n_levels * n_branches;
  if (n_tokens <= kMostTokens) return;
  throw engine::Error(
      engine::ErrorCode::Usage,
      fmt::format("--tokens {} --levels {} --branches {}: found {} tokens in one simulation, "
                  "expected at most {}; give fewer tokens or levels",
                  options.n_tokens, options.n_levels, n_branches, n_tokens, kMostTokens));
}

std::vector<Curve> drawn_curves(const ScheduleOptions& options) {
  check_size(options);
  std::vector<double> rights = options.rights;
  if (rights.empty()) rights = {0, 0.2, 0.4, 0.6, 0.8, 1};
  const FigureStages stages = stages_of(options, ns_of(kDraftMs), ns_of(kVerifyMs));
  std::vector<Curve> curves;
  for (const double right : rights) {
    const engine::ChainTexts texts{.right = right,
                                   .depth = options.depth,
                                   .n_tokens = options.n_tokens,
                                   .n_levels = options.n_levels,
                                   .seed = options.seed};
    curves.push_back(curve_of({.name = fmt::format("tokens right {:.3g} %", 100 * right),
                               .right = right,
                               .stages = stages},
                              options, [&](int n) { return engine::chain_levels(texts, n); }));
  }
  return curves;
}

std::vector<Curve> recorded_curves(const ScheduleOptions& options) {
  const OpenedRecording opened = open_recording(options.recording, interrupted);
  std::vector<Curve> curves;
  for (const engine::RecordedStage& stage : engine::recorded_stages(opened.timeline))
    curves.push_back(
        curve_of({.name = stage.name, .stages = stages_of(options, stage.draft, stage.verify)},
                 options, [&](int) { return stage.texts; }));
  if (curves.empty())
    throw engine::Error(engine::ErrorCode::BadInput,
                        engine::escaped(options.recording) + kNoSchedule);
  return curves;
}

int drafters_of(const ScheduleOptions& options, int n_branches) {
  return options.n_drafters > 0 ? std::min(options.n_drafters, n_branches) : n_branches;
}

Json row_of(const ScheduleOptions& options, const Curve& curve, std::size_t i) {
  const ScheduleFigure& figure = curve.by_branches[i];
  return {{"stage", curve.right < 0 ? Json(curve.name) : Json(nullptr)},
          {"right", curve.right < 0 ? Json(nullptr) : Json(curve.right)},
          {"acceptance_rate", curve.acceptance_rate},
          {"draft_ms", ms_of(curve.stages.draft)},
          {"verify_ms", ms_of(curve.stages.verify)},
          {"step_ms", ms_of(curve.stages.step)},
          {"branches", options.branches[i]},
          {"drafters", drafters_of(options, options.branches[i])},
          {"rounds", figure.n_rounds},
          {"tokens", figure.n_tokens},
          {"tokens_per_round", figure.tokens_per_round()},
          {"speedup", figure.speedup},
          {"bound", figure.bound},
          {"speedup_over_plain", figure.speedup_over_plain},
          {"target_busy", figure.target_busy},
          {"drafters_busy", figure.drafters_busy}};
}

Json rows_of(const ScheduleOptions& options, const std::vector<Curve>& curves) {
  Json rows = Json::array();
  for (const Curve& curve : curves)
    for (std::size_t i = 0; i < curve.by_branches.size(); i++)
      rows.push_back(row_of(options, curve, i));
  return rows;
}

/// A header, then a line per row; a value that is null is empty.
std::string csv_of(const Json& rows) {
  std::string text;
  for (const auto& [name, value] : rows[0].items()) text += (text.empty() ? "" : ",") + name;
  text += "\n";
  for (const Json& row : rows) {
    std::string line;
    for (const auto& [name, value] : row.items()) {
      if (name != rows[0].begin().key()) line += ",";
      if (value.is_string()) line += value.get<std::string>();
      if (value.is_number()) line += value.dump();
    }
    text += line + "\n";
  }
  return text;
}

/// A table with a line per curve and a column per number of branches.
std::string table_of(const char* title,
                     const ScheduleOptions& options,
                     const std::vector<Curve>& curves,
                     const std::function<std::string(const ScheduleFigure&)>& shown) {
  std::vector<std::vector<std::string>> rows{{title, "accepted"}};
  for (const int n : options.branches) rows[0].push_back(fmt::format("n={}", n));
  for (const Curve& curve : curves) {
    auto& row = rows.emplace_back();
    row = {curve.name, fmt::format("{:.0f} %", 100 * curve.acceptance_rate)};
    for (const ScheduleFigure& figure : curve.by_branches) row.push_back(shown(figure));
  }
  return engine::aligned_table(rows) + "\n";
}

std::string text_of(const ScheduleOptions& options, const std::vector<Curve>& curves) {
  std::string text;
  const std::string drafters = options.n_drafters > 0
                                   ? fmt::format("at most {} at a time", options.n_drafters)
                                   : std::string("a draft model per branch");
  for (std::size_t i = 0; i < (options.recording.empty() ? 1 : curves.size()); i++)
    text += fmt::format("{}draft {:.3g} ms, verification {:.3g} ms, plain step {:.3g} ms; {}\n",
                        options.recording.empty() ? "" : curves[i].name + ": ",
                        ms_of(curves[i].stages.draft), ms_of(curves[i].stages.verify),
                        ms_of(curves[i].stages.step), drafters);
  if (options.recording.empty())
    text += fmt::format("{} of n sequences of {}; a draft is a chain of {}\n",
                        engine::counted(options.n_levels, "level"),
                        engine::counted(options.n_tokens, "token"),
                        engine::counted(options.depth, "token"));
  const auto times = [](double value) { return fmt::format("{:.2f}x", value); };
  const auto percent = [](double value) { return fmt::format("{:.0f} %", 100 * value); };
  text += "\n" + table_of("speed-up over drafting and verifying in turn", options, curves,
                          [&](const ScheduleFigure& f) { return times(f.speedup); });
  text += table_of("its bound", options, curves,
                   [&](const ScheduleFigure& f) { return times(f.bound); });
  text += table_of("speed-up over plain decoding", options, curves,
                   [&](const ScheduleFigure& f) { return times(f.speedup_over_plain); });
  text += table_of("target busy", options, curves,
                   [&](const ScheduleFigure& f) { return percent(f.target_busy); });
  text += table_of("drafters busy", options, curves,
                   [&](const ScheduleFigure& f) { return percent(f.drafters_busy); });
  text.pop_back();
  return text;
}

}  // namespace

int reason_schedule(const ScheduleOptions& options) {
  const std::vector<Curve> curves =
      options.recording.empty() ? drawn_curves(options) : recorded_curves(options);
  if (!options.json && !options.csv) {
    print(text_of(options, curves));
    return 0;
  }
  const Json rows = rows_of(options, curves);
  print(options.csv ? csv_of(rows) : dumped({{"rows", nlohmann::json(rows)}}));
  return 0;
}

}  // namespace app
