// Recognises files by their first bytes, so that a refusal can name the format that was found.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// "a GGUF file", "a Git LFS pointer, 130 bytes", ...; "" if the format is unknown.
std::string recognised_as(std::string_view bytes);

}  // namespace engine
