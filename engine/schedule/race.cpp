#include "engine/schedule/race.h"

#include <algorithm>

namespace engine {

void Race::add(Lane lane) {
  lanes_.push_back(std::make_unique<Lane>(std::move(lane)));
}

Lane* Race::step_next() {
  Lane* next = nullptr;
  for (const auto& lane : lanes_) {
    if (runs(*lane) && (!next || lane->compute_ns < next->compute_ns)) next = lane.get();
  }
  if (next) stepper_.step(std::span(&next, 1));
  return next;
}

void Race::step_each() {
  for (const auto& lane : lanes_) {
    Lane* one = lane.get();
    if (runs(*one)) stepper_.step(std::span(&one, 1));
  }
}

bool Race::finished() const {
  return std::none_of(lanes_.begin(), lanes_.end(),
                      [this](const auto& lane) { return runs(*lane); });
}

void Race::stop(RunId run) {
  stopped_.push_back(run);
}

bool Race::stopped(const Lane& lane) const {
  return std::find(stopped_.begin(), stopped_.end(), lane.run) != stopped_.end();
}

}  // namespace engine
