// The stream of a SEED schedule: several runs that take turns at one draft and one target, on a
// clock of fixed times.
#pragma once

#include <vector>

#include "engine/event/event.h"

namespace streams {

inline constexpr engine::Nanoseconds kScheduledDraft = 2'000'000;  // of every tree

/// @param n_runs      texts of `n_tokens`, numbered from 1; a text that ends gives its place to the
///                    next
/// @param n_branches  texts under way at once
std::vector<engine::Event> schedule(int n_runs, int n_branches, int n_tokens = 24);

}  // namespace streams
