// Stop strings: where the text of a continuation ends because one of them is complete.
//   which    the stop string that is complete first counts; of several that are complete with the
//            same character, the longest
//   tokens   the text is read token by token, so the end does not depend on how many tokens a step
//            brings: every lossless decoder stops where plain decoding does
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "engine/base/types.h"

namespace engine {

/// A complete stop string.
struct StopFound {
  std::size_t which = 0;  // index of the stop string
  std::size_t begin = 0;  // bytes of text before it
  bool operator==(const StopFound&) const = default;
};

/// Looks for stop strings in a text that comes in pieces (Knuth, Morris, Pratt for each of them).
/// The result does not depend on where the text is cut into pieces.
class StopScanner {
 public:
  /// @param stops  none of them empty
  explicit StopScanner(std::vector<std::string> stops);
  /// Reads on until a stop string is complete; what stands after it is not read.
  std::optional<StopFound> push(std::string_view text);
  /// Bytes at the end of what was read that may be the beginning of a stop string.
  std::size_t held() const;
  const std::vector<std::string>& stops() const;

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;
  std::vector<std::size_t> matched_;  // [stops] bytes of each that the text read ends with
  std::size_t n_read_ = 0;
};

/// Text for a screen: passes on what can no longer belong to a stop string, and nothing from the
/// beginning of a complete one on.
class TextBeforeStop {
 public:
  explicit TextBeforeStop(std::vector<std::string> stops) : scanner_(std::move(stops)) {}
  /// @return  the text that may be shown now
  std::string push(std::string_view text);
  /// @return  the rest, where no stop string is complete
  std::string finish();

 private:
  StopScanner scanner_;
  std::string held_;         // read, and not passed on yet
  std::size_t n_shown_ = 0;  // bytes passed on
  bool stopped_ = false;
};

/// The tokens of one continuation, read as they are decided.
class StopReader {
 public:
  StopReader(TextStream stream, std::vector<std::string> stops)
      : stream_(std::move(stream)), scanner_(std::move(stops)) {}
  /// Reads the tokens that follow those read before, until a stop string is complete. Call it once
  /// for each step, with all tokens that the step commits if none is.
  /// @return  how many of them were read; 0: no stop string is complete
  int read(std::span<const TokenId> emitted);
  const std::optional<StopFound>& found() const { return found_; }
  /// The stop string found.
  const std::string& stop() const;

 private:
  TextStream stream_;
  StopScanner scanner_;
  std::optional<StopFound> found_;
};

}  // namespace engine
