// The events of a SEED schedule: several runs share one draft model and one target, with fixed times.
#pragma once

#include <vector>

#include "engine/event/event.h"

namespace streams {

inline constexpr engine::Nanoseconds kScheduledDraft = 2'000'000;  // time to draft each tree

/// @param n_runs      sequences of `n_tokens`, numbered from 1; a sequence that ends gives its branch to
///                    the next
/// @param n_branches  sequences that are active at the same time
std::vector<engine::Event> schedule(int n_runs, int n_branches, int n_tokens = 24);

}  // namespace streams
