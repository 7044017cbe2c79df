// Trains a vocabulary: SentencePiece BPE on a sample of the model's training texts.
//   digits  every digit is a token, which helps arithmetic
//   "\n"    is a token of its own; other bytes outside the vocabulary become byte tokens
//   text    without normalisation, dummy prefix or removal of spaces, so decode(encode(x)) == x for
//           every valid UTF-8 text
//   ids     0 <unk>, 1 <s>, 2 </s>, 3 <pad>
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/types.h"

namespace engine {

/// Settings of learn_tokenizer().
struct TokenizerTraining {
  int vocab_size = 2048;
  std::int64_t sample_bytes = 20'000'000;
  int n_threads = 2;
};

/// Trains and writes tokenizer.model and tokenizer_config.json into `directory`, created if absent.
/// @param text      returns text i of the sample; called in order until sample_bytes are read
/// @param learning  called with true before SentencePiece starts, which cannot be stopped, and with
///                  false after it; may be empty
/// @throws Error(BadInput)   if the sample has too few different characters for the vocabulary
/// @throws Error(Resources)  if the directory cannot be written
void learn_tokenizer(const TokenizerTraining& settings,
                     const std::function<std::string(std::int64_t)>& text,
                     const std::string& directory,
                     const std::function<void(bool)>& learning = {});

}  // namespace engine
