// Whose turn it is where lanes decode the same prompts, and what time a lane is charged with. Lanes
// take turns prompt by prompt, so that drift of the machine hits all alike. A lane whose texts take
// turns among themselves (SEED) decodes a group of prompts in one turn; what it is charged with is
// the time that passed, so that texts under way at once count once.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace app {

/// A lane decodes texts of a group of prompts: one, or all of them at once.
struct Turn {
  std::size_t lane = 0;
  std::size_t text = 0;  // the first, from 0 in the group
  std::size_t n_texts = 1;
  bool operator==(const Turn&) const = default;
};

/// The turns of one group, each lane's texts once. The order of the lanes turns with every prompt
/// and repeat; so does the prompt of the group at which a lane of several texts has its turn.
/// @param first_prompt  the group's first, of all prompts
/// @param n_texts       prompts of the group, at least 1
/// @param repeat        from 0
/// @param at_once       of each lane: whether it decodes the group in one turn
std::vector<Turn> lane_turns(std::size_t first_prompt,
                             std::size_t n_texts,
                             int repeat,
                             const std::vector<bool>& at_once);

/// The time that passed while texts took turns, ms, without what reading prompts took. Of several
/// branches the draft reads beside the target's work: that is not taken off, for it takes no time of
/// its own while both work at once, and hardly any where they take turns.
/// @param figures    of the scheduler (engine::RoundsScheduler): its wall_ms, prefill_ms and
///                   draft_prefill_ms, all calls together
/// @param n_at_once  texts under way at once, at the most
double decode_wall_ms(const std::map<std::string, double>& figures, std::size_t n_at_once);

}  // namespace app
