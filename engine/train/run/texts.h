// From texts of a mixture to tokens that are learnt from.
#pragma once

#include <memory>
#include <string>

#include "engine/data/mixture.h"
#include "engine/base/limits.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/train/core/packing.h"

namespace engine {

/// bos, prompt, completion, eos. The bos and eos a text gets are training's business, not the
/// tokenizer configuration's.
TokenText tokenized(const Tokenizer& tokenizer, const TrainingText& text);

/// @throws Error(BadInput)  if directory/tokenizer.model has no bos or no eos
std::unique_ptr<Tokenizer> training_tokenizer(const std::string& directory,
                                              const FileLimits& limits);

}  // namespace engine
