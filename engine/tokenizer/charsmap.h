// The table with which a SentencePiece model normalises texts. It is a double-array trie (Yata et
// al. 2007, in darts-clone's format) whose values are offsets into a list of NUL-terminated
// replacements.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// Checks every node that an input can reach: all reads stay inside the table, no node is its own
/// descendant, and no path has more than 32 matches (the limit of the sentencepiece library).
/// @return  the fault; "" for a sound table
std::string charsmap_fault(std::string_view charsmap);

/// Replaces at each position the longest key that matches, and keeps a character at which no key
/// matches.
/// @param charsmap  without a fault; empty: no table
std::string normalized_by(std::string_view charsmap, std::string_view text);

}  // namespace engine
