// The panels Loss, Probes and Speed: curves of a training run.
#pragma once

namespace ui {

struct Panel;
extern const Panel kLossPanel;
extern const Panel kProbesPanel;
extern const Panel kPacePanel;

}  // namespace ui
