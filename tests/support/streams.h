// Event streams for tests: runs of a small model, complete and known exactly.
#pragma once

#include <string>
#include <vector>

#include "engine/event/event.h"

namespace engine::test {

/// A model of 16 tokens "t0".."t15" except: 1 is " the", 2 a line feed, 3 and 4 the two bytes of
/// U+00E9 (e with acute), 5 the quote ", 6 is "=cmd".
Event model_loaded();

/// Decoder, lane and length of a run over the prompt {1, 5}.
struct RunShape {
  RunId run = 1;
  std::string decoder = "lookahead";
  std::uint32_t race = 0;
  int lane = 0;
  Nanoseconds t0 = 1'000'000;
  int n_steps = 4;
  bool finished = true;
};

/// A run whose steps commit, in turn, 1 token (all proposals refused) and 3 tokens (two accepted
/// and the bonus). Every step costs propose 1,000 ns, forward 80,000, verify 2,000, commit 500, and
/// lasts 100,000 ns of wall time. "ar" commits one token a step and proposes nothing.
std::vector<Event> run_events(const RunShape& shape);

/// model_loaded and one lookahead run.
std::vector<Event> small_stream();

/// A run of ar, then one of lookahead, without races. lookahead got `share` of the processor time
/// that ar got (90 %), and used the same compute.
std::vector<Event> one_after_the_other(double share);

/// One event of every kind; every field differs from its default.
std::vector<Event> every_kind();

/// The event's bytes in a recording.
std::string bytes_of(const Event& event);

}  // namespace engine::test
