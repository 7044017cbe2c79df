// The panel Training: stage, time and newest figures of the opened training run.
#pragma once

#include <string>

namespace ui {

struct Context;
struct Panel;
extern const Panel kTrainingPanel;

/// Returns the sentence that the panels of a training run show while none is open; empty if one is.
std::string no_training_yet(const Context& context);

}  // namespace ui
