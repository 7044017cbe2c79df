// What happened in words, for people who hear a screen instead of seeing it (UX.md 4.12).
#pragma once

#include <string>

#include "engine/event/timeline.h"

namespace engine {

/// "Step 12: 5 proposed, 3 accepted, position 4 rejected, 1 unused, bonus ' the'; 4 tokens in 3.7
/// ms".
std::string describe(const Timeline& timeline, const RunRecord& run, const StepRecord& step);

/// A run as text: what was asked, every step, what came of it.
std::string describe(const Timeline& timeline, const RunRecord& run);

/// The same of every run; says so if there is none.
std::string describe(const Timeline& timeline);

}  // namespace engine
