// The only loop: one step of one or several lanes in one forward.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/decode/decoder.h"
#include "engine/event/queue.h"

namespace engine {

/// A sequence, its decoder, and what its steps cost so far.
struct Lane {
  RunId run = 0;
  Sequence sequence;
  std::unique_ptr<Decoder> decoder;
  Sampling sampling;
  Limits limits;
  int n_steps = 0;
  std::int64_t compute_ns = 0;  // its own compute: propose, forward, verify, commit
  std::int64_t n_rows = 0;      // rows evaluated, all steps
  std::int64_t n_proposed = 0;  // guessed or drafted rows that a verdict was possible for
  std::int64_t n_accepted = 0;  // of those, kept
  std::int64_t n_rejected = 0;  // first disagreements
  TokenTree tree;               // of the step under way
};

class Stepper {
 public:
  /// @param events  where steps are told, or null
  Stepper(LanguageModel& model, EventSink* events) : model_(model), events_(events) {}

  /// One forward for all lanes, none of them finished. A lane alone takes exactly the tokens it
  /// takes among others.
  void step(std::span<Lane* const> lanes);

 private:
  LanguageModel& model_;  // owned by the engine
  EventSink* events_;
};

}  // namespace engine
