// The texts of the tokens of a recording. A recording can be limited to those of the tokens that occur in it: the vocabulary of a large
// model takes more space than a short run.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "engine/event/event.h"

namespace engine {

/// Adds every token id of an event to `tokens`; the vocabulary of a ModelLoaded does not count.
void add_tokens_of(const Event& event, std::set<TokenId>& tokens);

/// Removes the texts of all other tokens from the event, which then has `piece_ids`. Without effect on a model without texts.
void keep_pieces(ModelLoaded& model, const std::set<TokenId>& tokens);

/// The largest sum, over the models of a recording, of tokens without texts in the file: each takes some 32 bytes of memory.
inline constexpr std::int64_t kMaxAbsentTexts = 8'000'000;
/// Returns the number of tokens whose texts the event leaves out.
/// @param model  without fault_of_pieces()
std::int64_t n_absent_texts(const ModelLoaded& model);

/// Returns why the texts do not fit the vocabulary; empty if they do.
std::string fault_of_pieces(const ModelLoaded& model);
/// Returns the model with a text for every token, empty for those that the event does not have. Its `piece_ids` is empty.
/// @param model  without fault_of_pieces()
ModelLoaded with_all_pieces(const ModelLoaded& model);

}  // namespace engine
