// The normaliser table inside a SentencePiece model: a double-array trie (Yata et al. 2007, as
// darts-clone stores it) whose values are offsets into a block of NUL-terminated replacements.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// Checks every node of the trie that an input can reach: all reads stay inside, no node is its own
/// descendant, and no path has more than the 32 matches that the library has room for.
/// @return  the fault; "" for a sound table
std::string charsmap_fault(std::string_view charsmap);

/// `text` with the table applied: at each place the longest key is replaced, and a character that
/// begins no key stays.
/// @param charsmap  without a fault; empty: no table
std::string normalized_by(std::string_view charsmap, std::string_view text);

}  // namespace engine
