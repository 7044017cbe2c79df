// Replacement names for symbols that the sentencepiece library cannot handle: pieces that contain a
// NUL, and user-defined symbols if more than 64 of them form a chain in which each is a prefix of
// the next.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {

/// Renames such symbols to private-use characters, in the model that the library loads and in every
/// text that it encodes. Ids stay the same, and so does a model without such symbols. If a text
/// contains one of these characters itself, it is encoded as the symbol.
class SymbolNames {
 public:
  /// Finds the symbols to rename.
  explicit SymbolNames(const ScannedModel& model);
  /// The model file with the renamed pieces.
  std::string renamed(std::string_view file, const ScannedModel& model) const;
  /// `text` with its symbols renamed: from left to right, the longest one at each place.
  std::string in_text(std::string_view text) const;

 private:
  std::unordered_map<std::string, std::string> stand_in_;
  std::size_t longest_ = 0;  // bytes of the longest symbol
};

}  // namespace engine
