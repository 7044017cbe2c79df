// The most frequent tokens of the answers that a target wrote: the output vocabulary of small drafts.
#pragma once

#include <span>
#include <vector>

#include "engine/train/run/own_outputs.h"

namespace engine {

/// The `count` most frequent answer tokens; ties go to the lower id. The end tokens that occur are
/// always among them. Tokens that occur in no answer are used, from id 0, if the answers have too few.
/// @param texts  prompts are not counted
/// @param count  1 to vocab_size, and at least the number of end tokens that occur
/// @return  [count], ascending ids
/// @throws Error(BadInput)  if a token is out of range, or if there are more end tokens than `count`
std::vector<TokenId> frequent_tokens(std::span<const OwnOutput> texts, int vocab_size, int count);

}  // namespace engine
