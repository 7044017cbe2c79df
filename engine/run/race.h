// Lanes that compete on one device take turns: the lane with the least compute of its own steps
// next, and only a lane's own compute counts. At any moment all lanes stand at equal compute time,
// give or take a step, so a live race is fair.
#pragma once

#include <memory>
#include <vector>

#include "engine/decode/step/stepper.h"

namespace engine {

class Race {
 public:
  /// @param model   owned by the engine, outlives the race
  /// @param events  where steps are told, or null
  Race(LanguageModel& model, EventSink* events) : model_(model), events_(events) {}

  void add(Lane lane);
  /// A lane of another model, which outlives the race too.
  void add(Lane lane, LanguageModel& model);
  /// One step of the unfinished lane with the least own compute; the first of equals.
  /// @return  the lane that stepped, or null if none is left
  Lane* step_next();
  /// One step of each unfinished lane, first to last.
  void step_each();
  bool finished() const;
  /// Ends a lane where it stands.
  void stop(RunId run);
  bool stopped(const Lane& lane) const;
  std::vector<std::unique_ptr<Lane>>& lanes() { return lanes_; }
  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }

 private:
  bool runs(const Lane& lane) const { return !lane.sequence.finished() && !stopped(lane); }
  void step(std::size_t index);

  LanguageModel& model_;
  EventSink* events_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Stepper> steppers_;  // of each lane
  std::vector<RunId> stopped_;
};

}  // namespace engine
