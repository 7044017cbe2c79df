// Aligned tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace engine {

/// A line per row: the first column left-aligned, the others right-aligned, two blanks between.
/// Widths count UTF-8 characters; rows may have different numbers of columns.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace engine
