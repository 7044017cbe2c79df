// Tokenizes the texts of a mixture for training.
#pragma once

#include <memory>
#include <string>

#include "engine/base/limits.h"
#include "engine/data/mixture.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/train/core/packing.h"

namespace engine {

/// The tokens bos, prompt, completion, eos. Ignores the tokenizer's settings for bos and eos.
TokenText tokenized(const Tokenizer& tokenizer, const TrainingText& text);

/// Loads a tokenizer.
/// @throws Error(BadInput)  if directory/tokenizer.model has no bos or no eos
std::unique_ptr<Tokenizer> training_tokenizer(const std::string& directory,
                                              const FileLimits& limits);

}  // namespace engine
