// Recognising files that are not what their name says, so that a refusal can say what they are.
#pragma once

#include <string>
#include <string_view>

namespace engine {

/// "a GGUF file", "a Git LFS pointer, 130 bytes", ...; empty if the bytes are of no known kind.
std::string recognised_as(std::string_view bytes);

}  // namespace engine
