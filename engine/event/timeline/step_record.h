// One step of a run, as the events of that step describe it.
#pragma once

#include <optional>
#include <vector>

#include "engine/event/event.h"

namespace engine {

/// One step of a run, as far as it was told.
struct StepRecord {
  StepBegun begun;
  Drafted drafted;
  Verified verified;
  Committed committed;
  StepEnded ended;
  std::vector<BlockRefined> blocks;
  std::optional<PoolChanged> pool;  // several of one step are joined
  bool has_drafted = false, has_verified = false, has_committed = false, complete = false;
};

/// What is asked of many steps at a time: unpacked in some ten nanoseconds, without allocation.
struct StepHead {
  StepBegun begun;
  StepEnded ended;
  int n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  int n_rows = 0;                   // of the tree; where none was told, as begun
  int first_pos = 0, n_tokens = 0;  // committed
  int n_bonus = 0;       // of these, proposed by nothing in a step that proposed something
  int n_pool_hits = 0;   // of these, guessed by the pool or a look-up
  int n_pool_added = 0;  // n-grams
  int n_blocks = 0;      // block states told
  bool has_drafted = false, has_verified = false, has_committed = false, complete = false;
  bool tried_guesses = false;  // the tree held guessed rows
  bool has_pool = false;
};

StepHead head_of(const StepRecord& step);

}  // namespace engine
