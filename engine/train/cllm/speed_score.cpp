#include "engine/train/cllm/speed_score.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/decode/step/stepper.h"
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

double metric(const std::map<std::string, double>& metrics, const char* name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? 0 : found->second;
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
      sums.fast_forward += metric(s.metrics, "fast_forward_mean");
      sums.stationary += metric(s.metrics, "stationary_tokens");
    }
    all.push_back(std::move(sums));
  }
  return all;
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Answers the prompts by `jacobi`, many in one forward pass. @return  false if stopped
bool answer(Model& model,
            const std::vector<SpeedPrompt>& prompts,
            const SpeedSettings& settings,
            const char* refill,
            const std::function<bool()>& stop,
            const std::function<void(const SpeedPrompt&, const Lane&)>& done) {
  const OptionValues options = {{"block", std::to_string(settings.block)}, {"refill", refill}};
  Limits limits;
  limits.max_tokens = settings.max_tokens;
  limits.eos_ids = model.config().eos_ids;
  const auto n_lanes = static_cast<std::size_t>(settings.n_lanes);
  for (std::size_t begin = 0; begin < prompts.size(); begin += n_lanes) {
    const std::size_t end = std::min(begin + n_lanes, prompts.size());
    std::vector<Lane> lanes;
    for (std::size_t i = begin; i < end; i++)
      lanes.push_back(make_lane(static_cast<RunId>(i), model, prompts[i].tokens, "jacobi",
                                {.target = model, .limits = limits}, options));
    if (!decode_lanes(model, lanes, [&] { return !(stop && stop()); })) return false;
    for (std::size_t i = begin; i < end; i++) done(prompts[i], lanes[i - begin]);
  }
  return true;
}

// The sum of log p of the tokens after the prompt, from one forward over all tokens.
double log_likelihood(Model& model, const Sequence& sequence) {
  const auto cache = model.make_cache();
  const auto tokens = sequence.tokens();
  TokenTree tree;
  for (std::size_t i = 0; i < tokens.size(); i++)
    tree.add(tokens[i], static_cast<int>(i) - 1, RowTag{});
  const BatchItem item{cache.get(), &tree, {}, Sampling{}};
  const auto out = model.forward(std::span(&item, 1), Wants{.row_p = true});
  constexpr double kLeast = 1e-30;
  double sum = 0;
  for (std::size_t i = sequence.prompt().size(); i < tokens.size(); i++)
    sum += std::log(std::max<double>(kLeast, out[0].row_p.at(i)));
  return sum;
}

Sums& sums_of(std::vector<Sums>& all, const std::string& task) {
  const auto found = std::ranges::find(all, task, [](const Sums& s) { return s.score.task; });
  if (found != all.end()) return *found;
  all.emplace_back().score.task = task;
  return all.back();
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

std::vector<SpeedScore> measure_speed(Model& model,
                                      const std::vector<SpeedPrompt>& prompts,
                                      const SpeedSettings& settings,
                                      Model* target,
                                      const std::function<bool()>& stop) {
  std::vector<Sums> block, slide;
  const auto add = [](Sums& sums, const Lane& lane) {
    sums.tokens += static_cast<double>(lane.sequence.generated().size());
    sums.steps += lane.n_steps;
  };
  const auto add_block = [&](const SpeedPrompt& prompt, const Lane& lane) {
    Sums& sums = sums_of(block, prompt.task);
    add(sums, lane);
    sums.score.n++;
    sums.fast_forward += metric(metrics_of(lane), "fast_forward_mean");
    sums.stationary += metric(metrics_of(lane), "stationary_tokens");
    if (target) sums.score.log_likelihood += log_likelihood(*target, lane.sequence);
  };
  const auto add_slide = [&](const SpeedPrompt& prompt, const Lane& lane) {
    add(sums_of(slide, prompt.task), lane);
  };
  if (!answer(model, prompts, settings, "block", stop, add_block)) return {};
  if (!answer(model, prompts, settings, "slide", stop, add_slide)) return {};
  std::vector<SpeedScore> scores;
  for (Sums& sums : block) {
    SpeedScore& score = sums.score;
    const Sums& sliding = slide[scores.size()];
    score.block = ratio(sums.tokens, sums.steps);
    score.slide = ratio(sliding.tokens, sliding.steps);
    score.fast_forward = ratio(sums.fast_forward, score.n);
    score.stationary = ratio(sums.stationary, score.n);
    score.log_likelihood = sums.tokens > 0 ? score.log_likelihood / sums.tokens : 0;
    scores.push_back(score);
  }
  return scores;
}

NamedFigures figures_of(const std::vector<SpeedScore>& scores) {
  if (scores.empty()) return {};
  double block = 0, slide = 0, accuracy = 0, fast_forward = 0, stationary = 0;
  double log_likelihood = 0;
  int n_checked = 0;
  for (const SpeedScore& s : scores) {
    block += s.block;
    slide += s.slide;
    fast_forward += s.fast_forward;
    stationary += s.stationary;
    accuracy += s.accuracy();
    log_likelihood += s.log_likelihood;
    n_checked += s.n_checked > 0;
  }
  const auto n = static_cast<double>(scores.size());
  NamedFigures figures = {{"tokens per step, block", block / n},
                          {"tokens per step, sliding", slide / n},
                          {"fast-forward", fast_forward / n},
                          {"stationary", stationary / n}};
  if (n_checked > 0) figures.emplace_back("accuracy", accuracy / n_checked);
  if (log_likelihood != 0) figures.emplace_back("log-likelihood", log_likelihood / n);
  return figures;
}

std::string to_markdown(const std::vector<SpeedScore>& before,
                        const std::vector<SpeedScore>& after) {
  const bool has_likelihood =
      std::ranges::any_of(before, [](const auto& s) { return s.log_likelihood != 0; });
  std::string table = fmt::format(
      "| task | problems | {} before | after | tokens a step, block: before | after | sliding: "
      "before | after | fast-forward before | after | stationary before | after |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      has_likelihood ? "log-likelihood, nats a token" : "right");
  const auto right = [](const SpeedScore& s) {
    if (s.log_likelihood != 0) return fmt::format("{:.3f}", s.log_likelihood);
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
    auto& object = list.emplace_back();
    object.update({{"task", s.task},
                   {"n", s.n},
                   {"n_checked", s.n_checked},
                   {"n_correct", s.n_correct},
                   {"tokens_per_step_block", s.block},
                   {"tokens_per_step_slide", s.slide},
                   {"fast_forward", s.fast_forward},
                   {"stationary", s.stationary}});
    if (s.log_likelihood != 0) object["log_likelihood"] = s.log_likelihood;
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
      s.log_likelihood = item.value("log_likelihood", 0.0);
      scores.push_back(std::move(s));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::BadInput, where + ": not the scores of a model: " + error.what());
  }
  return scores;
}

}  // namespace engine
