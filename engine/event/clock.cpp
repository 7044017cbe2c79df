#include "engine/event/clock.h"

#include <chrono>

namespace engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

SteadyClock::time_point session_start() {
  static const SteadyClock::time_point start = SteadyClock::now();
  return start;
}

// Initialised while the program loads, so that the first call of now_ns() includes the time before
// it.
[[maybe_unused]] const SteadyClock::time_point taken_early = session_start();

}  // namespace

Nanoseconds now_ns() {
  const SteadyClock::duration passed = SteadyClock::now() - session_start();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count();
}

}  // namespace engine
