// The part of Setup that shows how a model with a chat template reads the prompt.
#pragma once

namespace ui {

struct Context;

/// Draws the choice between chat and raw prompts, the system message, and the rendered prompt with
/// its special tokens in boxes. Draws nothing if the model has no chat template.
void setup_chat_part(Context& context);

}  // namespace ui
