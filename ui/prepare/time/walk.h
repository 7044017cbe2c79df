// Where a key takes the view from a step: over iterations, along a lane, along a token's flow.
#pragma once

#include <optional>
#include <vector>

#include "engine/event/timeline/timeline.h"
#include "ui/prepare/time/gantt.h"
#include "ui/prepare/time/run_times.h"

namespace ui {

/// Number of complete steps at the next end of a block of iterations, from `n_steps` on. A run
/// that refines one sliding block for ever has one iteration a step.
/// @param direction  1 or -1
/// @return nullopt: the run has no iterations, or none further on
std::optional<std::size_t> next_boundary(const engine::RunRecord& run,
                                         std::size_t n_steps,
                                         int direction);

/// The step index of the next slice of a lane behind (or before) step index `from`.
std::optional<std::size_t> next_in_lane(const RunTimes& times,
                                        LaneKind lane,
                                        std::size_t from,
                                        int direction);

/// The index of a step in a run, or of the first behind it; run.steps.size() if there is none.
std::size_t index_of(const engine::RunRecord& run, engine::StepId step);

/// One place a token passes through before it is committed.
struct FlowStop {
  enum class Kind { Born, Proposed, Refined, Committed } kind = Kind::Proposed;
  engine::StepId step = 0;
  int row = -1;  // of the step's tree, where it was proposed
  bool operator==(const FlowStop&) const = default;
};

/// The way of the token at a position, oldest first: the step its n-gram was born in, the steps
/// that proposed or refined the position in one unbroken run, the step that committed it.
std::vector<FlowStop> flow_of(const engine::RunRecord& run, int position);

}  // namespace ui
