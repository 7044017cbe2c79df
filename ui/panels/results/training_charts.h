// The curves of a training: what is minimised, what probes measured, how fast it goes.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kLossPanel;
extern const Panel kProbesPanel;
extern const Panel kPacePanel;

}  // namespace ui
