// The normaliser table inside a SentencePiece model: a double-array trie (Yata et al. 2007, as
// darts-clone stores it) whose values are offsets into a block of NUL-terminated replacements.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// Checks every node of the trie that an input can reach: all reads stay inside the table, no node
/// is its own descendant, and no path has more than 32 matches, which is the library's limit.
/// @return  the fault; "" for a sound table
std::string charsmap_fault(std::string_view charsmap);

/// Returns `text` after replacement by the table: at each place the longest key that matches is
/// replaced; a character at which no key matches stays.
/// @param charsmap  without a fault; empty: no table
std::string normalized_by(std::string_view charsmap, std::string_view text);

}  // namespace engine
