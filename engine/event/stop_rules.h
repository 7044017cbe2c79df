// Stop strings and stop ids as a person may ask for them: their bounds, and how the window writes
// them. The command line, the window and the engine share this.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"

namespace engine {

inline constexpr std::size_t kMaxStops = 64;            // stop strings, and stop ids
inline constexpr std::size_t kMaxStopTextBytes = 1024;  // of one stop string

/// Why a text cannot be a stop string: it is empty, too long, or not UTF-8; empty: it can.
std::string why_no_stop_text(std::string_view text);

/// Stop strings written one a line, as a form holds them: \n is a line feed, \t a tab, \r a carriage
/// return, \\ a backslash; any other backslash stands for itself. Empty lines are skipped.
std::vector<std::string> stop_texts_from(std::string_view lines);
/// The other way: stop_texts_from() gives them back.
std::string lines_of_stop_texts(const std::vector<std::string>& texts);

/// Ids with commas or blanks between; nullopt if anything else stands there.
std::optional<std::vector<TokenId>> stop_ids_from(std::string_view text);
/// "1, 2"
std::string text_of_stop_ids(const std::vector<TokenId>& ids);

}  // namespace engine
