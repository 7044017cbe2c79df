// One lane of an exported trace: keeps its events in order, apart from each other and nested.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// One event, times relative to the run's start.
struct TraceItem {
  char ph = 'X';  // X b e i C s f
  Nanoseconds ts = 0, end = 0;
  std::string name;
  std::string cat;
  std::string args;     // "{...}" or empty
  std::int64_t id = 0;  // of b, e, s, f
};

/// What settling a lane had to change.
struct LaneChanges {
  std::int64_t n_nudges = 0, n_left_out = 0;
};

/// Sorts by time (outer slices first), moves starts that tie by 1 ns, keeps slices nested and flows
/// inside the slice they were put in; what has no room is left out.
LaneChanges settle(std::vector<TraceItem>& lane);

/// Nanoseconds as microseconds with at most 3 decimals: 10500 -> "10.5".
std::string as_microseconds(std::int64_t ns);

}  // namespace engine
