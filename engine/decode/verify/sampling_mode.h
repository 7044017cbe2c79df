// Names of Sampling::Mode in commands and events.
#pragma once

#include <string_view>

#include "engine/event/run_rules.h"
#include "engine/model/language_model.h"

namespace engine {

/// "rejection" or "coupled".
inline const char* name_of(Sampling::Mode mode) {
  return mode == Sampling::Mode::Rejection ? kRejection : kCoupled;
}

/// The mode with this name. An unknown name gives Coupled, because every decoder supports it.
inline Sampling::Mode sampling_mode(std::string_view name) {
  return name == kRejection ? Sampling::Mode::Rejection : Sampling::Mode::Coupled;
}

/// The sampling of a run, from its settings in an event.
/// @tparam Settings  has the members temperature to seed of Sampling, and `sampling`, the name of a mode
template <class Settings>
Sampling sampling_from(const Settings& settings) {
  return {.temperature = settings.temperature,
          .top_k = settings.top_k,
          .top_p = settings.top_p,
          .min_p = settings.min_p,
          .repetition_penalty = settings.repetition_penalty,
          .seed = settings.seed,
          .mode = sampling_mode(settings.sampling)};
}

}  // namespace engine
