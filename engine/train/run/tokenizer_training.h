// Learns a vocabulary: SentencePiece BPE on a sample of the stream the model will read.
//   digits  one token each, arithmetic depends on it
//   "\n"    a token of its own; other bytes outside the vocabulary fall back to byte tokens
//   text    kept as it is: no normalisation, no dummy prefix, no spaces removed, so that
//           decode(encode(x)) == x for every valid UTF-8 text
//   ids     0 <unk>, 1 <s>, 2 </s>, 3 <pad>
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/types.h"

namespace engine {

struct TokenizerTraining {
  int vocab_size = 2048;
  std::int64_t sample_bytes = 20'000'000;
  int n_threads = 2;
};

/// Writes tokenizer.model and tokenizer_config.json into `directory`, made if absent.
/// @param text      text number i of the sample, called in order until sample_bytes are read
/// @param learning  told true when the sample is read and SentencePiece begins, which nobody can
///                  stop, and false when that is done; or empty
/// @throws Error(BadInput)   if the sample has too few different characters for the vocabulary
/// @throws Error(Resources)  if the directory cannot be written
void learn_tokenizer(const TokenizerTraining& settings,
                     const std::function<std::string(std::int64_t)>& text,
                     const std::string& directory,
                     const std::function<void(bool)>& learning = {});

}  // namespace engine
