// Puts the events of one lane of an exported trace in order, and keeps its slices nested.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// One event, times relative to the run's start.
struct TraceItem {
  char ph = 'X';  // the event's phase in the trace format: X b e i C s f
  Nanoseconds ts = 0, end = 0;
  std::string name;
  std::string cat;
  std::string args;     // "{...}" or empty
  std::int64_t id = 0;  // of b, e, s, f
};

/// Counts of the changes that sort_and_nest() made.
struct LaneChanges {
  std::int64_t n_nudges = 0, n_left_out = 0;
};

/// Sorts a lane by time (outer slices first), moves equal starts apart by 1 ns, and makes slices
/// nest and flows lie inside their slice. Slices that do not fit are removed.
LaneChanges sort_and_nest(std::vector<TraceItem>& lane);

/// Nanoseconds as microseconds with at most 3 decimals: 10500 -> "10.5".
std::string as_microseconds(std::int64_t ns);

}  // namespace engine
