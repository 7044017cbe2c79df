// The prompts of a file, as Setup reads them through the catalog.
#pragma once

#include <string>
#include <vector>

#include "engine/event/command.h"

namespace ui {

/// The prompts of a file.
struct CatalogPromptFile {
  std::vector<engine::SetPrompt> prompts;
  std::string unusable;  // why it cannot be used; empty if it can
};

}  // namespace ui
