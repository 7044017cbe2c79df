// The settings of a run as exports state them: a file is given by its name without folders. Only the
// message of a failed run may contain a path.
#pragma once

#include <string>
#include <string_view>

#include "engine/event/event.h"

namespace engine {

/// The value of an option; of a path its last part: "heads" of "/a/heads/".
std::string_view without_folders(std::string_view value);
/// The options of the decoder: "window=5, ngram_size=3".
std::string decoder_options(const RunStarted& started, std::string_view separator);
/// Sampling, seed and limits in words: "greedy, seed 1, at most 64 tokens, prompt of 2 tokens".
std::string run_settings(const RunStarted& started);

}  // namespace engine
