// The data of one step of a run, collected from its events.
#pragma once

#include <optional>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// All events of one step.
struct StepRecord {
  StepBegun begun;
  Drafted drafted;
  Verified verified;
  Committed committed;
  StepEnded ended;
  std::vector<BlockRefined> blocks;
  std::optional<PoolChanged> pool;  // all changes of the step, joined
  bool has_drafted = false, has_verified = false, has_committed = false, complete = false;
};

/// The counts of a step, for code that reads many steps. Unpacking them takes about 10 ns and no
/// allocation.
struct StepHead {
  StepBegun begun;
  StepEnded ended;
  int n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  // rows of the tree; the number in `begun` if the tree is missing
  int n_rows = 0;
  int first_pos = 0, n_tokens = 0;  // committed tokens
  int n_bonus = 0;                  // committed tokens with status Bonus
  int n_pool_hits = 0;              // committed guesses of the n-gram pool or of prompt lookup
  int n_pool_added = 0;             // n-grams
  int n_blocks = 0;                 // block states
  int chosen = 0;  // 1 + the size that the decoder chose (SizeDecision); 0: it chose none
  bool has_drafted = false, has_verified = false, has_committed = false, complete = false;
  bool tried_guesses = false;  // the tree has guessed rows
  bool has_pool = false;
};

/// The head of a step.
StepHead head_of(const StepRecord& step);

}  // namespace engine
