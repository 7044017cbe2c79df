// Computes where keys move the view to: the next iteration, the next slice of a lane, the next step of a token.
#pragma once

#include <optional>
#include <vector>

#include "engine/event/event.h"
#include "ui/prepare/time/lane_kind.h"
#include "ui/prepare/time/run_times.h"

namespace engine {
struct RunRecord;
}

namespace ui {

/// Searches from the state after `n_steps` steps, in a direction, for the nearest state in which a
/// block has just ended, and returns its number of steps. The first and the last state of the run
/// count too. If no block of the run has ended, as with a sliding block, every state counts.
/// @param direction  1 or -1
/// @return nullopt if the run has no iterations, or no further ones
std::optional<std::size_t> next_boundary(const engine::RunRecord& run,
                                         std::size_t n_steps,
                                         int direction);

/// Returns the step index of the next slice of a lane after (or before) the step index `from`.
std::optional<std::size_t> next_in_lane(const RunTimes& times,
                                        LaneKind lane,
                                        std::size_t from,
                                        int direction);

/// Returns the index of a step in a run, or of the first later one; run.steps.size() if there is none.
std::size_t index_of(const engine::RunRecord& run, engine::StepId step);

/// A step that a token passes through.
struct FlowStop {
  /// PoolInsert: the token's n-gram entered the pool.
  enum class Kind { PoolInsert, Proposed, Refined, Committed } kind = Kind::Proposed;
  engine::StepId step = 0;
  int row = -1;  // row of the step's tree if the token was proposed; else -1
  bool operator==(const FlowStop&) const = default;
};

/// Returns the steps of the token at a position, oldest first: the step that added its n-gram to the pool, the consecutive steps that proposed or
/// refined the position, and the step that committed it.
std::vector<FlowStop> flow_of(const engine::RunRecord& run, int position);

}  // namespace ui
