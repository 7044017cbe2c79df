// How far a training is: its stage, time and speed, and its newest figures.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kTrainingPanel;

/// What the panels of a training say while none is open; empty: one is.
std::string no_training_yet(const Context& context);

}  // namespace ui
