// The splitting patterns of published tokenizers, by the names that GGUF files give them
// (tokenizer.ggml.pre).
//   source  the fields pre_tokenizer of the models' tokenizer.json, and llama.cpp's list of names
//           (llama-vocab.cpp of October 2026)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/bpe/pre_tokenizer.h"

namespace engine {

/// A pre-tokeniser that GGUF files can name.
struct WordPatterns {
  std::vector<std::string_view> names;  // the first is the usual one
  /// Each pattern further splits the pieces of the previous one into its matches and the text
  /// between them.
  std::vector<std::string_view> patterns;
  bool ignore_merges = false;  // BpeRules::ignore_merges
  bool add_bos = false;        // used if the file has no add_bos_token
};

/// All kinds.
std::span<const WordPatterns> all_word_patterns();
/// The kind with this name; null: none.
const WordPatterns* word_patterns_named(std::string_view name);
/// Adds a step for each pattern.
void add_patterns(const WordPatterns& kind,
                  const SplitPattern::Origin& origin,
                  PreTokenizer& pre_tokenizer);

}  // namespace engine
