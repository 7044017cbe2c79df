// The chat templates of models for the window.
#pragma once

#include <functional>
#include <string>

namespace engine {
struct ModelFiles;
}
namespace ui {
struct ChatPreview;
}

namespace app {

/// Shows prompts as the chat template of a model renders them; keeps its tokenizer. No function: the
/// model has no template, or no tokenizer.
std::function<ui::ChatPreview(const std::string& prompt, const std::string& system, bool always)>
chat_preview(const engine::ModelFiles& files);

}  // namespace app
