// Lanes on one device take turns: the lane that has used the least compute makes the next step, and
// only a lane's own compute counts. So at any moment the compute times of all lanes differ by at
// most one step, and a live race is fair.
#pragma once

#include <memory>
#include <vector>

#include "engine/decode/step/stepper.h"

namespace engine {

/// Several lanes on one device. Decides which lane makes the next step.
class Race {
 public:
  /// @param model   the model of lanes that are added without one; owned by the engine, outlives
  ///                the race
  /// @param events  receives the steps' events; or null
  Race(LanguageModel& model, EventSink* events) : model_(model), events_(events) {}

  /// Adds a lane of the race's model.
  void add(Lane lane);
  /// Adds a lane of another model, which outlives the race too.
  void add(Lane lane, LanguageModel& model);
  /// Runs one step of the unfinished lane that has used the least compute; on a tie, of the first
  /// such lane.
  /// @return  the lane that stepped, or null if none is left
  Lane* step_next();
  /// Runs one step of each unfinished lane, in order.
  void step_each();
  /// True if no lane can make another step.
  bool finished() const;
  /// Stops a run. It keeps the steps that it has made.
  void stop(RunId run);
  /// True if stop() was called for this lane's run.
  bool stopped(const Lane& lane) const;
  /// All lanes, in the order they were added.
  std::vector<std::unique_ptr<Lane>>& lanes() { return lanes_; }
  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }  ///< all lanes

 private:
  bool runs(const Lane& lane) const { return !lane.sequence.finished() && !stopped(lane); }
  void step(std::size_t index);

  LanguageModel& model_;
  EventSink* events_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Stepper> steppers_;  // one per lane
  std::vector<RunId> stopped_;
};

}  // namespace engine
