// Limits of stop strings and stop ids, and their text form in the window. The command line, the
// window and the engine share these rules.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"

namespace engine {

inline constexpr std::size_t kMaxStops = 64;  // most stop strings of a run; also most stop ids
inline constexpr std::size_t kMaxStopTextBytes = 1024;  // most bytes of one stop string

/// The reason why a text cannot be a stop string (empty, too long, not UTF-8); "" if it can.
std::string why_no_stop_text(std::string_view text);

/// Parses stop strings, one per line: \n is a line feed, \t a tab, \r a carriage return, \\ a
/// backslash; any other backslash stays. Empty lines are skipped.
std::vector<std::string> stop_texts_from(std::string_view lines);
/// The inverse of stop_texts_from().
std::string lines_of_stop_texts(const std::vector<std::string>& texts);

/// Parses ids separated by commas or blanks; nullopt for any other text.
std::optional<std::vector<TokenId>> stop_ids_from(std::string_view text);
/// "1, 2": the inverse of stop_ids_from().
std::string text_of_stop_ids(const std::vector<TokenId>& ids);

}  // namespace engine
