// `model chat`: prints a rendered conversation.
#pragma once

namespace app {

struct ModelCommandOptions;

/// Prints the conversation of --messages as the chat template of a model renders it.
/// @return  the exit code
int model_chat(const ModelCommandOptions& options);

}  // namespace app
