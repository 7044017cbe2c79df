// The panel Setup: prompt, decoder, sampling and model of the next run.
#pragma once

namespace ui {

struct Panel;
extern const Panel kSetupPanel;

}  // namespace ui
