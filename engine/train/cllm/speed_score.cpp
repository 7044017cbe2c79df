#include "engine/train/cllm/speed_score.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/train/run/evaluate.h"

namespace engine {
namespace {

EvaluationSettings evaluation_of(const SpeedSettings& settings, const char* refill) {
  EvaluationSettings evaluation;
  evaluation.tasks = settings.tasks;
  evaluation.levels = settings.n_problems > 1 ? std::vector{1, 2} : std::vector{1};
  evaluation.split = settings.split;
  evaluation.n_problems = std::max(1, settings.n_problems / 2);
  evaluation.max_tokens = settings.max_tokens;
  evaluation.n_lanes = settings.n_lanes;
  evaluation.decoder = "jacobi";
  evaluation.options = {{"block", std::to_string(settings.block)}, {"refill", refill}};
  evaluation.entropy = false;
  return evaluation;
}

double metric(const TaskScore& score, const char* name) {
  const auto found = score.metrics.find(name);
  return found == score.metrics.end() ? 0 : found->second;
}

// Sums over the levels of a task.
struct Sums {
  SpeedScore score;
  double tokens = 0, steps = 0, fast_forward = 0, stationary = 0;
};

std::vector<Sums> by_task(const Evaluation& evaluation, const std::vector<std::string>& tasks) {
  std::vector<Sums> all;
  for (const std::string& task : tasks) {
    Sums sums;
    sums.score.task = task;
    for (const TaskScore& s : evaluation.scores) {
      if (s.task != task) continue;
      sums.score.n += s.n;
      sums.score.n_checked += s.n_checked;
      sums.score.n_correct += s.n_correct;
      sums.tokens += static_cast<double>(s.n_tokens);
      sums.steps += static_cast<double>(s.n_steps);
      sums.fast_forward += metric(s, "fast_forward_mean");
      sums.stationary += metric(s, "stationary_tokens");
    }
    all.push_back(std::move(sums));
  }
  return all;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

std::vector<SpeedScore> measure_speed(Model& model,
                                      const SpeedSettings& settings,
                                      const std::function<bool()>& stop) {
  const auto progress = [&](int, int) { return !(stop && stop()); };
  const Evaluation block = evaluate(model, evaluation_of(settings, "block"), progress);
  if (!block.complete) return {};
  const Evaluation slide = evaluate(model, evaluation_of(settings, "slide"), progress);
  if (!slide.complete) return {};
  const std::vector<Sums> sliding = by_task(slide, settings.tasks);
  std::vector<SpeedScore> scores;
  for (const Sums& sums : by_task(block, settings.tasks)) {
    SpeedScore score = sums.score;
    score.block = ratio(sums.tokens, sums.steps);
    score.slide = ratio(sliding[scores.size()].tokens, sliding[scores.size()].steps);
    score.fast_forward = ratio(sums.fast_forward, score.n);
    score.stationary = ratio(sums.stationary, score.n);
    scores.push_back(std::move(score));
  }
  return scores;
}

NamedFigures figures_of(const std::vector<SpeedScore>& scores) {
  if (scores.empty()) return {};
  double block = 0, slide = 0, accuracy = 0, fast_forward = 0, stationary = 0;
  int n_checked = 0;
  for (const SpeedScore& s : scores) {
    block += s.block;
    slide += s.slide;
    fast_forward += s.fast_forward;
    stationary += s.stationary;
    accuracy += s.accuracy();
    n_checked += s.n_checked > 0;
  }
  const auto n = static_cast<double>(scores.size());
  NamedFigures figures = {{"tokens per step, block", block / n},
                          {"tokens per step, sliding", slide / n},
                          {"fast-forward", fast_forward / n},
                          {"stationary", stationary / n}};
  if (n_checked > 0) figures.emplace_back("accuracy", accuracy / n_checked);
  return figures;
}

std::string to_markdown(const std::vector<SpeedScore>& before,
                        const std::vector<SpeedScore>& after) {
  std::string table =
      "| task | problems | right before | after | tokens a step, block: before | after | sliding: "
      "before | after | fast-forward before | after | stationary before | after |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  const auto right = [](const SpeedScore& s) {
    return s.n_checked ? fmt::format("{:.1f} %", 100 * s.accuracy()) : std::string("not checked");
  };
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); i++) {
    const SpeedScore &b = before[i], &a = after[i];
    table += fmt::format(
        "| {} | {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | "
        "{:.1f} |\n",
        b.task, b.n, right(b), right(a), b.block, a.block, b.slide, a.slide, b.fast_forward,
        a.fast_forward, b.stationary, a.stationary);
  }
  return table;
}

std::string to_json(const std::vector<SpeedScore>& scores) {
  auto list = nlohmann::ordered_json::array();
  for (const SpeedScore& s : scores) {
    list.push_back({{"task", s.task},
                    {"n", s.n},
                    {"n_checked", s.n_checked},
                    {"n_correct", s.n_correct},
                    {"tokens_per_step_block", s.block},
                    {"tokens_per_step_slide", s.slide},
                    {"fast_forward", s.fast_forward},
                    {"stationary", s.stationary}});
  }
  return list.dump();
}

std::vector<SpeedScore> speed_scores_from(const std::string& json, const std::string& where) {
  std::vector<SpeedScore> scores;
  try {
    for (const auto& item : nlohmann::json::parse(json)) {
      SpeedScore s;
      s.task = item.at("task").get<std::string>();
      s.n = item.at("n").get<int>();
      s.n_checked = item.at("n_checked").get<int>();
      s.n_correct = item.at("n_correct").get<int>();
      s.block = item.at("tokens_per_step_block").get<double>();
      s.slide = item.at("tokens_per_step_slide").get<double>();
      s.fast_forward = item.at("fast_forward").get<double>();
      s.stationary = item.at("stationary").get<double>();
      scores.push_back(std::move(s));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::BadInput, where + ": not the scores of a model: " + error.what());
  }
  return scores;
}

}  // namespace engine
