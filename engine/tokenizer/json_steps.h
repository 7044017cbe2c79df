// The steps around the model of a tokenizer.json: normalizer, pre_tokenizer, decoder,
// post_processor.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/tokenizer/bpe/bpe_tokenizer.h"

namespace engine {

/// Reads these steps. Every method accepts null for an absent part, and throws Error(BadInput) with
/// the JSON path for an unknown or damaged step.
class JsonSteps {
 public:
  /// @param path  for messages; borrowed
  explicit JsonSteps(const std::string& path) : path_(path) {}

  /// NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, and Sequence of them.
  void read_normalizer(const Json* json, Normalizer& out) const;
  /// Split, ByteLevel, Digits, Metaspace, Punctuation, and Sequence of them.
  void read_pre_tokenizer(const Json* json, PreTokenizer& out) const;
  /// ByteLevel, or a Sequence of Replace, ByteFallback, Fuse, Strip of a leading space; Metaspace.
  BpeDecoding read_decoder(const Json* json) const;
  /// TemplateProcessing; ByteLevel, which adds nothing; Sequence of them.
  /// @param id_of  the id of a token by its text
  void read_post_processor(const Json* json,
                           const std::function<std::optional<TokenId>(const std::string&)>& id_of,
                           std::vector<TokenId>& before,
                           std::vector<TokenId>& after) const;

 private:
  const std::string& path_;
};

}  // namespace engine
