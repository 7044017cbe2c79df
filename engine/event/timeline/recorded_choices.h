// The sizes that a recorded run chose, with which it can be repeated.
#pragma once

#include <cstdint>
#include <vector>

namespace engine {

struct RunRecord;

/// The choices of all steps, in order (Drafted::choices).
std::vector<std::int32_t> choices_of(const RunRecord& run);

/// True if the run chose sizes and the recording has none of its choices: an older program recorded
/// it, or its decoder does not report them.
bool lacks_choices(const RunRecord& run);

}  // namespace engine
