// `model chat`: prints a rendered conversation.
#pragma once

namespace app {

struct ModelCommandOptions;

/// Prints the conversation in --messages as rendered by the model's chat template.
/// @return  the exit code
int model_chat(const ModelCommandOptions& options);

}  // namespace app
