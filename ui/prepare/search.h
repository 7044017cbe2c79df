// What is typed into a filter or a search field, looked for in a text.
#pragma once

#include <string_view>

namespace ui {

/// Whether `part` stands in `text`, capitals or not (of ASCII). An empty part stands everywhere.
bool found_in(std::string_view text, std::string_view part);

}  // namespace ui
