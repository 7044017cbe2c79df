// The events of a set of races: the race of streams.h, for several prompts and repeats.
#pragma once

#include <string>
#include <vector>

#include "engine/event/event.h"

namespace streams {

struct SetShape {
  std::vector<std::string> decoders;
  int n_prompts = 1, n_repeats = 1;
  int n_tokens = 40;
  int n_races = -1;  // that are in the stream; -1: all
};

/// Returns a session with the set. Steps of repeat r take 1 + 0.1 r times as long; prompts are named "p0", "p1", ... with the tasks "even" and
/// "odd". Each race has a sample of the machine's load.
std::vector<engine::Event> set_of_races(const SetShape& shape);

}  // namespace streams
