#include "engine/event/timeline/recorded_choices.h"

#include <algorithm>

#include "engine/event/timeline/timeline.h"

namespace engine {

std::vector<std::int32_t> choices_of(const RunRecord& run) {
  std::vector<std::int32_t> choices;
  for (const StepRecord& step : run.steps)
    choices.insert(choices.end(), step.drafted.choices.begin(), step.drafted.choices.end());
  return choices;
}

bool lacks_choices(const RunRecord& run) {
  bool has_decisions = false;
  for (const StepRecord& step : run.steps) {
    if (!step.drafted.choices.empty()) return false;
    has_decisions |= step.has_drafted && step.drafted.decision.size >= 0;
  }
  return has_decisions;
}

}  // namespace engine
