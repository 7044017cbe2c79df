// Searches for a substring, for filters and search fields.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

/// Returns true if `text` contains `part`, ignoring the case of ASCII letters. Every text contains the empty part.
bool found_in(std::string_view text, std::string_view part);

/// Returns the indices of the generated tokens in which an occurrence of `part` begins, ascending and each once. An occurrence may end in
/// a later token. Ignores the case of ASCII letters; a token without text counts as its name ("<|im_end|>").
std::vector<std::size_t> tokens_with(const engine::Timeline& timeline,
                                     const engine::RunRecord& run,
                                     std::string_view part);

}  // namespace ui
