// Options of a decoder that a tree of thoughts cannot use.
#pragma once

#include <string>

#include "engine/decode/options.h"

namespace engine {

/// Refuses options with which a decoder may end a text early (FastCoT's `stop`): a truncated thought
/// could not be recognised.
/// @throws Error(Usage)
void refuse_early_stop(const std::string& decoder, const OptionValues& options);

}  // namespace engine
