// Tokens per step of Jacobi decoding, and accuracy, on unseen problems: the figures that a consistency
// training changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "engine/data/record.h"
#include "engine/event/recording/training_report.h"
#include "engine/model/model.h"

namespace engine {

/// Figures of a task. Both values of `refill` give the output of autoregressive decoding, so both
/// have the same accuracy.
struct SpeedScore {
  std::string task;
  int n = 0, n_checked = 0, n_correct = 0;
  double block = 0, slide = 0;  // tokens per step of `jacobi` with refill=block and refill=slide
  double fast_forward = 0;      // mean over blocks, then over answers (event/trajectory.h)
  double stationary = 0;        // stationary tokens per answer (event/trajectory.h)
  // Mean log probability of the answers' tokens under the target, nats; 0: not measured
  double log_likelihood = 0;
  /// Share of checked answers that are correct.
  double accuracy() const { return n_checked ? static_cast<double>(n_correct) / n_checked : 0; }
};

/// Settings of measure_speed().
struct SpeedSettings {
  std::vector<std::string> tasks;
  Split split = Split::Test;
  int n_problems = 100;  // problems of each task, half of level 1 and half of level 2
  int block = 16;
  int max_tokens = 256;
  int n_lanes = 32;
};

/// Measures all tasks.
/// @param stop  called after every forward pass; true stops. May be empty
/// @return  a score for each task; empty if stopped
std::vector<SpeedScore> measure_speed(Model& model,
                                      const SpeedSettings& settings,
                                      const std::function<bool()>& stop = {});

/// A prompt without a checker.
struct SpeedPrompt {
  std::string task;
  std::vector<TokenId> tokens;
};

/// Measures the answers to prompts.
/// @param settings  without tasks, split and n_problems
/// @param target    for the log-likelihood of the answers; null: not measured
/// @return  a score for each task, in the order of their first prompts; empty if stopped
std::vector<SpeedScore> measure_speed(Model& model,
                                      const std::vector<SpeedPrompt>& prompts,
                                      const SpeedSettings& settings,
                                      Model* target,
                                      const std::function<bool()>& stop = {});

/// The figures averaged over the tasks, for the log of a training.
NamedFigures figures_of(const std::vector<SpeedScore>& scores);
/// A table of two measurements of the same tasks.
std::string to_markdown(const std::vector<SpeedScore>& before,
                        const std::vector<SpeedScore>& after);
/// The scores as JSON.
std::string to_json(const std::vector<SpeedScore>& scores);
/// Parses to_json(). @throws Error(BadInput)  naming `where`
std::vector<SpeedScore> speed_scores_from(const std::string& json, const std::string& where);

}  // namespace engine
