// Stand-ins for symbols that the sentencepiece library cannot hold under their own names: user-
// defined symbols of which more than its 64 begin each other, and pieces that contain a NUL.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/tokenizer/sentencepiece_scan.h"

namespace engine {

/// Such symbols are renamed to single private-use characters, in the model the library loads and
/// in every text it encodes; their ids stay. Ordinary models have none, and nothing is changed.
/// A text that itself holds one of those private-use characters then reads as the symbol.
class SymbolNames {
 public:
  explicit SymbolNames(const ScannedModel& model);
  /// The file with the pieces renamed.
  std::string renamed(std::string_view file, const ScannedModel& model) const;
  /// The text with the longest symbol at each place, left to right, replaced.
  std::string in_text(std::string_view text) const;

 private:
  std::unordered_map<std::string, std::string> stand_in_;
  std::size_t longest_ = 0;  // bytes of the longest symbol
};

}  // namespace engine
