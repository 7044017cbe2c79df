// Tokens per step of Jacobi decoding, and accuracy, on unseen problems: the figures that a consistency
// training changes.
#pragma once

#include <functional>
#include <string>
#include <vector>

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
