// Splits a text into words before byte-pair encoding, as in Hugging Face's tokenizers library.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/tokenizer/bpe/split_pattern.h"

namespace engine {

/// Splits each piece by a pattern.
struct SplitStep {
  SplitPattern pattern;
  SplitBehaviour behaviour = SplitBehaviour::Isolated;
  bool inverts = false;  // as in SplitPattern::split()
};

/// Puts a space before each piece that does not begin with one.
struct PrefixSpaceStep {};

/// Writes the bytes of each piece as symbols (byte_symbols.h).
struct ByteLevelStep {};

/// Replaces each space by another character.
struct MetaspaceStep {
  /// Selects the pieces that get the character in front, unless they already begin with it.
  enum class Prepend : std::uint8_t { Always, First, Never };
  std::string replacement = "\xE2\x96\x81";  // U+2581
  Prepend prepend = Prepend::Always;
};

/// The words of one text, as views of the text or of `buffers`.
struct Words {
  std::vector<std::string_view> words;
  std::deque<std::string> buffers;
};

/// Steps in order.
class PreTokenizer {
 public:
  /// One step.
  using Step = std::variant<SplitStep, PrefixSpaceStep, ByteLevelStep, MetaspaceStep>;
  /// The item that precedes a text: nothing, an added token, or other text.
  enum class Place : std::uint8_t { Start, AfterToken, AfterText };

  /// Appends a step.
  void add(Step step) { steps_.push_back(std::move(step)); }
  /// True if a step writes bytes as symbols.
  bool is_byte_level() const;
  /// Splits `text` (UTF-8, borrowed) into words.
  /// @throws Error(BadInput)  if a pattern needs too many steps
  Words apply(std::string_view text, Place place) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace engine
