// What a run's steps are made of, read from what it told: so a panel knows what it can draw of a
// method it has never heard of.
#pragma once

#include "engine/event/timeline/timeline.h"

namespace ui {

struct RunTraits {
  bool told = false;     // at least one step has said what it computes
  bool blocks = false;   // guesses refined in place
  bool window = false;   // cells that only feed later guesses
  bool guesses = false;  // proposals found without a distribution: from a pool, or looked up
  bool pool = false;     // n-grams kept from step to step
  bool drafts = false;   // proposals drawn from a distribution

  bool proposes() const { return blocks || guesses || drafts; }
  /// What a Trajectory draws.
  bool settles() const { return blocks || window; }
  /// What a Pool draws.
  bool finds() const { return pool || guesses; }
};

RunTraits traits_of(const engine::RunRecord& run);

}  // namespace ui
