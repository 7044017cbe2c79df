// Stop strings: a continuation ends where its text completes one of them.
//   which    the stop string that is completed first ends the text; if the same character completes
//            several, the longest
//   tokens   the text is read token by token, so the end does not depend on the number of tokens
//            per step: every lossless decoder stops where plain decoding stops
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/tokenizer/tokenizer.h"

namespace engine {

/// A complete stop string.
struct StopFound {
  std::size_t which = 0;  // index of the stop string
  std::size_t begin = 0;  // bytes of text before it
  bool operator==(const StopFound&) const = default;
};

/// Searches for stop strings in a text that arrives in pieces (Knuth-Morris-Pratt for each of
/// them). The result does not depend on where the text is cut into pieces.
class StopScanner {
 public:
  /// @param stops  none of them empty
  explicit StopScanner(std::vector<std::string> stops);
  /// Reads a piece until a stop string is complete, and ignores the text after it.
  std::optional<StopFound> push(std::string_view text);
  /// Number of bytes at the end of the text that may be the beginning of a stop string.
  std::size_t held() const;
  /// The stop strings.
  const std::vector<std::string>& stops() const;

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
  // [stops] length of the longest prefix of each stop string that the text ends with
  std::vector<std::size_t> matched_;
  std::size_t n_read_ = 0;
};

/// Text for display: passes on text that can no longer belong to a stop string; drops a complete
/// stop string and all text after it.
class TextBeforeStop {
 public:
  /// @param stops  none of them empty
  explicit TextBeforeStop(std::vector<std::string> stops) : scanner_(std::move(stops)) {}
  /// Reads a piece. @return  the text that can be shown now
  std::string push(std::string_view text);
  /// Ends the text. @return  the rest, if no stop string is complete
  std::string finish();

 private:
  StopScanner scanner_;
  std::string held_;         // read, but not passed on yet
  std::size_t n_shown_ = 0;  // bytes passed on
  bool stopped_ = false;
};

/// Reads the tokens of one continuation as steps emit them, and finds the stop string that ends it.
class StopReader {
 public:
  /// @param stream  decodes tokens to text, set to the end of the prompt
  /// @param stops   none of them empty
  StopReader(TextStream stream, std::vector<std::string> stops)
      : stream_(std::move(stream)), scanner_(std::move(stops)) {}
  /// Reads a step's tokens until a stop string is complete. Call it once for each step, with all
  /// tokens that the step emits without a stop.
  /// @return  number of tokens up to the one that completes a stop string; 0: none is complete
  int read(std::span<const TokenId> emitted);
  /// The complete stop string, if there is one.
  const std::optional<StopFound>& found() const { return found_; }
  /// The text of the complete stop string; there must be one.
  const std::string& stop() const;

 private:
  TextStream stream_;
  StopScanner scanner_;
  std::optional<StopFound> found_;
};

}  // namespace engine
