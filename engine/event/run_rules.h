// What follows from the names and options of a run, for the engine that acts on it and for the
// window that may ask no decoder: one answer for both.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace engine {

/// The two ways of drawing, as commands, events and the command line name them.
inline constexpr const char* kCoupled = "coupled";
inline constexpr const char* kRejection = "rejection";

/// Whether a temperature is so low that the likeliest token is always taken.
constexpr bool is_greedy(float temperature) {
  return temperature < 1e-5f;
}

/// Whether proposals are judged by drawn numbers, by the papers' rule, and not by comparing tokens.
bool rejects(std::string_view sampling, float temperature);

/// Whether a decoder that is lossless stays so with these options. `as_released` changes the distribution by
/// which candidates are judged: under rejection sampling drafts that are certain (drawn at
/// temperature 0) are then judged by a distribution they were not drawn from; not where each node has one
/// candidate, nor by rule "naive", which judges by none. Typical acceptance (`verify`)
/// keeps what is likely enough, by whatever distribution it was drawn; at temperature 0 nothing but the
/// likeliest token is.
/// @param options       of the decoder, complete
/// @param by_rejection  what rejects() says of the run
/// @param temperature   the target's, which is the draft's too where it has none of its own
bool keeps_distribution(const std::map<std::string, std::string>& options,
                        bool by_rejection,
                        float temperature);

/// Whether several texts of this decoder take turns at two models (SEED's rounds); one alone has
/// nobody to take turns with.
bool takes_turns(std::string_view decoder);

/// Whether a decoder's drafts come from draft heads (Medusa, Chimera).
bool has_draft_heads(std::string_view decoder);

/// Devices that share the rows of a text's steps, "ranks" (engine/decode/guess/lookahead_rank.h); 1 where
/// no option says so. They judge by comparing tokens: rejects() and more than one do not go
/// together.
int n_ranks_of(const std::map<std::string, std::string>& options);

}  // namespace engine
