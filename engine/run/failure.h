// What ended a run, as its RunFailed tells it.
#pragma once

#include <string>

#include "engine/event/event.h"

namespace engine {

/// Why something ended, whatever was thrown.
struct Failure {
  int code = 0;  // as of RunFailed: an ErrorCode, or 70 for a fault of this program
  std::string message;

  /// A person, or a time limit, ended it: no failure.
  bool is_stop() const { return code == static_cast<int>(ErrorCode::Cancelled); }
};

/// Of the exception being handled; call it in a catch alone.
Failure current_failure();

/// The event that ends a run so, now.
/// @param run  0: none had begun
RunFailed failed_event(const Failure& failure, RunId run);

}  // namespace engine
