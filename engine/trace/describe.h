// Describes runs in words, for screen readers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "engine/event/timeline/timeline.h"

namespace engine {

/// One step: "Step 12: 5 proposed, 3 accepted, position 4 rejected, 1 unused, bonus ' the'; 4
/// tokens in 3.7 ms".
std::string describe(const Timeline& timeline, const RunRecord& run, const StepRecord& step);

/// A run: its settings, every step and its result.
std::string describe(const Timeline& timeline, const RunRecord& run);

/// All runs of a timeline.
/// @param before_each  called before each run; may throw to cancel. May be empty
std::string describe(const Timeline& timeline, const std::function<void()>& before_each = {});

/// The reason why a run ended: "length", "stop_string \"\\n\"".
std::string ended_by(const RunFinished& finished);

/// A message with both hashes, for runs that were recorded with other weights than the model on
/// this machine has; nullopt if the hashes agree or one is unknown (BAD_INPUTS TR11).
std::optional<std::string> other_weights(std::string_view recorded_model,
                                         std::string_view recorded_hash,
                                         std::string_view model_here,
                                         std::string_view hash_here);

/// Dropped payload: "probabilities of steps 40-52 not kept (buffer full), 12,345 bytes".
std::string describe(const PayloadDropped& drop);

}  // namespace engine
