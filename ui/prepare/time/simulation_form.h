// The settings of the schedule simulator.
#pragma once

#include <string>

namespace ui {

/// The settings of a simulation. Stage times and the number of branches are those of the recording until the user sets them; the number of
/// draft models and the policy are initially those of the paper: one draft model per branch, first come first served.
struct SimulationForm {
  bool on = false;
  float draft_ms = -1, verify_ms = -1;  // time of a stage per round; negative: the recorded mean
  int n_branches = 0;                   // number of branches; 0: as recorded
  int n_drafts = 0;  // draft models that work at the same time; 0: one per branch
  std::string policy = "fcfs";
  bool operator==(const SimulationForm&) const = default;
};

/// Limits of the stage times, ms.
constexpr float kShortestStageMs = 0.01f, kLongestStageMs = 10'000;

}  // namespace ui
