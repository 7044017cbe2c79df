#include "engine/run/race.h"

#include <algorithm>
#include <optional>

namespace engine {

void Race::add(Lane lane) {
  add(std::move(lane), model_);
}

void Race::add(Lane lane, LanguageModel& model) {
  lanes_.push_back(std::make_unique<Lane>(std::move(lane)));
  steppers_.emplace_back(model, events_);
}

void Race::step(std::size_t index) {
  Lane* one = lanes_[index].get();
  steppers_[index].step(std::span(&one, 1));
}

Lane* Race::step_next() {
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < lanes_.size(); i++) {
    if (runs(*lanes_[i]) && (!next || lanes_[i]->compute_ns < lanes_[*next]->compute_ns)) next = i;
  }
  if (!next) return nullptr;
  step(*next);
  return lanes_[*next].get();
}

void Race::step_each() {
  for (std::size_t i = 0; i < lanes_.size(); i++)
    if (runs(*lanes_[i])) step(i);
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
