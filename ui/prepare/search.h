// Searches for a substring, for filters and search fields.
#pragma once

#include <string_view>

namespace ui {

/// Returns true if `text` contains `part`, ignoring the case of ASCII letters. Every text contains the empty part.
bool found_in(std::string_view text, std::string_view part);

}  // namespace ui
