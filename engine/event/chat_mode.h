// The choice between the model's chat template and the raw prompt.
#pragma once

#include <cstdint>

namespace engine {

/// How a prompt is read.
enum class ChatMode : std::uint8_t {
  Auto,  // as Chat if the model has a template and the prompt names no special token, else as Raw
  Chat,  // as a message that the model's template renders
  Raw,   // as it is
};

}  // namespace engine
