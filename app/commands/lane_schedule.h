// The order in which the lanes of `compare` decode prompts, and the time that counts for a lane.
// Lanes alternate after every prompt, so that a change in the machine's speed affects all of them.
// A lane that decodes several prompts concurrently (SEED) decodes a group of prompts in one turn,
// and the elapsed time of the turn counts once.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace app {

/// One turn of a lane: decodes one prompt of a group, or all of them concurrently.
struct Turn {
  std::size_t lane = 0;
  std::size_t text = 0;  // index in the group of the first prompt
  std::size_t n_texts = 1;
  bool operator==(const Turn&) const = default;
};

/// The turns of one group of prompts. The order of the lanes rotates with every prompt and repeat.
/// The prompt at which a lane takes its turn for the whole group rotates too.
/// @param first_prompt  index of the group's first prompt among all prompts
/// @param n_texts       number of prompts in the group, at least 1
/// @param repeat        index of the repeat
/// @param at_once       for each lane: true if it decodes the group in one turn
std::vector<Turn> lane_turns(std::size_t first_prompt,
                             std::size_t n_texts,
                             int repeat,
                             const std::vector<bool>& at_once);

/// Elapsed time of concurrent decoding, in ms, without prefill. With several branches the draft's
/// prefill overlaps with the target's work, so it is not subtracted.
/// @param figures    totals of the scheduler (engine::RoundsScheduler): wall_ms, prefill_ms and
///                   draft_prefill_ms
/// @param n_at_once  maximum number of concurrent sequences
double decode_wall_ms(const std::map<std::string, double>& figures, std::size_t n_at_once);

}  // namespace app
