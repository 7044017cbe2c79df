// Sampling::Mode and the names it has in commands and events.
#pragma once

#include <string_view>

#include "engine/event/run_rules.h"
#include "engine/model/language_model.h"

namespace engine {

inline const char* name_of(Sampling::Mode mode) {
  return mode == Sampling::Mode::Rejection ? kRejection : kCoupled;
}

/// Of any other name than kRejection: Coupled, which every decoder has.
inline Sampling::Mode sampling_mode(std::string_view name) {
  return name == kRejection ? Sampling::Mode::Rejection : Sampling::Mode::Coupled;
}

}  // namespace engine
