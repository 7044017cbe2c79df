// Finds the tokens that end a turn or a text by their names, because files often list only one of
// them. source llama.cpp's list (llama-vocab.cpp of October 2026)
#pragma once

#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// True for a name such as "<|im_end|>" or "</s>".
bool names_end_of_turn(std::string_view name);

/// The special tokens of `tokenizer` with such names, ascending. If it has "<|call|>" with
/// "<|return|>" or "<|flush|>" (or "<|calls|>" with "<|flush|>"), "<|end|>" ends only a part of a
/// turn and is left out. If it has "<|tool_response>", "</s>" is an ordinary token and left out.
std::vector<TokenId> ends_of_turn_by_name(const Tokenizer& tokenizer);

}  // namespace engine
