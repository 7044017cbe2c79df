// Properties of a run that follow from the names and options of its decoder. The engine and the
// window, which does not link the decoders, share these rules.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace engine {

/// The two modes of sampling, as named in commands, events and on the command line.
inline constexpr const char* kCoupled = "coupled";
inline constexpr const char* kRejection = "rejection";

/// True if a temperature is so low that sampling always takes the likeliest token.
constexpr bool is_greedy(float temperature) {
  return temperature < 1e-5f;
}

/// True if proposals are verified by rejection sampling, not by comparing tokens.
bool rejects(std::string_view sampling, float temperature);

/// True if a lossless decoder stays lossless with these options. Two options can change the output
/// distribution:
///   as_released  under rejection sampling, drafts chosen at temperature 0 are verified against a
///                distribution that they were not drawn from. This changes nothing if each node has
///                only one candidate, or with rule "naive", which uses no draft distribution
///   verify       "typical": typical acceptance keeps any token that is likely enough; exact only
///                at temperature 0
/// @param options       of the decoder, with the defaults filled in
/// @param by_rejection  rejects() of the run
/// @param temperature   temperature of the target; also that of the draft model, unless an option
///                      sets another one
bool keeps_distribution(const std::map<std::string, std::string>& options,
                        bool by_rejection,
                        float temperature);

/// True if several sequences of this decoder take turns at the draft model and the target (SEED's
/// rounds). A single sequence runs as plain speculative decoding.
bool takes_turns(std::string_view decoder);

/// True if draft heads propose the tokens (Medusa, Chimera).
bool has_draft_heads(std::string_view decoder);

/// True if the guesses form a tree of ranked successors (recycling). The tag of such a guess has its depth
/// and its rank, that of other guesses the n-gram's number and the index in it.
bool guesses_successors(std::string_view decoder);

/// Number of ranks: devices that share the rows of a step (engine/decode/ranks/lookahead_rank.h); 1
/// without that option. Ranks verify by comparing tokens, so rejects() requires one rank.
int n_ranks_of(const std::map<std::string, std::string>& options);

}  // namespace engine
