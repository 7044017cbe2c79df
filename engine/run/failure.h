// Exceptions as RunFailed events.
#pragma once

#include <string>

#include "engine/event/event.h"

namespace engine {

/// An exception, as a code and a message.
struct Failure {
  int code = 0;  // as in RunFailed: an ErrorCode, or 70 for a bug of this program
  std::string message;

  /// True if a user or a time limit stopped the work, which is not a failure.
  bool is_stop() const { return code == static_cast<int>(ErrorCode::Cancelled); }
};

/// Describes the exception that is being handled. Call it only within a catch block.
Failure current_failure();

/// The event that ends a run with this failure, with the current time.
/// @param run  0: no run had begun
RunFailed failed_event(const Failure& failure, RunId run);

}  // namespace engine
