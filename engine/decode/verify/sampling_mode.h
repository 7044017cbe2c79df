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

}  // namespace engine
