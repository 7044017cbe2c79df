// Rows of words in columns, for a terminal.
#pragma once

#include <string>
#include <vector>

namespace engine {

/// A line each row: the first column to the left, the others to the right, two blanks between.
/// Columns are counted in characters of UTF-8; rows may be of different lengths.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace engine
