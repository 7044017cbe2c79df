// How far a model decodes in parallel by itself, and whether it is still right: what a consistency
// training changes, measured on unseen problems.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/data/record.h"
#include "engine/event/recording/training_report.h"
#include "engine/model/model.h"

namespace engine {

/// Of one task. Both refills write what plain decoding writes, so there is one accuracy.
struct SpeedScore {
  std::string task;
  int n = 0, n_checked = 0, n_correct = 0;
  double block = 0, slide = 0;  // tokens a step: `jacobi` with refill=block, with refill=slide
  double fast_forward = 0;      // mean of the answers' means over blocks (event/trajectory.h)
  double stationary = 0;        // tokens an answer
  double accuracy() const { return n_checked ? static_cast<double>(n_correct) / n_checked : 0; }
};

struct SpeedSettings {
  std::vector<std::string> tasks;
  Split split = Split::Test;
  int n_problems = 100;  // a task, of level 1 and 2 by halves
  int block = 16;
  int max_tokens = 256;
  int n_lanes = 32;
};

/// @param stop  asked after every forward; true ends it. Or empty
/// @return  a score a task; none if it was stopped
std::vector<SpeedScore> measure_speed(Model& model,
                                      const SpeedSettings& settings,
                                      const std::function<bool()>& stop = {});

/// Means over the tasks, for a training's log.
NamedFigures figures_of(const std::vector<SpeedScore>& scores);
/// Two measures of the same tasks side by side.
std::string to_markdown(const std::vector<SpeedScore>& before,
                        const std::vector<SpeedScore>& after);
/// JSON, and back. @throws Error(BadInput)  naming `where`
std::string to_json(const std::vector<SpeedScore>& scores);
std::vector<SpeedScore> speed_scores_from(const std::string& json, const std::string& where);

}  // namespace engine
