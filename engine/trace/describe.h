// What happened in words, for people who hear a screen instead of seeing it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// "Step 12: 5 proposed, 3 accepted, position 4 rejected, 1 unused, bonus ' the'; 4 tokens in 3.7
/// ms".
std::string describe(const Timeline& timeline, const RunRecord& run, const StepRecord& step);

/// A run as text: what was asked, every step, what came of it.
std::string describe(const Timeline& timeline, const RunRecord& run);

/// The same of every run; says so if there is none.
/// @param before_each  called before each run is told, which may be long; may throw. Or empty
std::string describe(const Timeline& timeline, const std::function<void()>& before_each = {});

/// The end of a run in words: "length", "stop_string \"\\n\"".
std::string ended_by(const RunFinished& finished);

/// What to say where runs were recorded with other weights than those here, naming both hashes;
/// nullopt where they agree or one of them is not known (BAD_INPUTS TR11).
std::optional<std::string> other_weights(std::string_view recorded_model,
                                         std::string_view recorded_hash,
                                         std::string_view model_here,
                                         std::string_view hash_here);

/// "probabilities of steps 40-52 not kept (buffer full), 12,345 bytes".
std::string describe(const PayloadDropped& drop);

}  // namespace engine
