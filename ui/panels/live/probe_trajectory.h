// The panel Probe trajectory: the decoding of one unseen prompt at each probe of a consistency training run.
#pragma once

#include <cstdint>

#include "ui/shell/panel_state.h"

namespace ui {

struct Context;
struct Panel;
extern const Panel kProbeTrajectoryPanel;

/// The state of the panel: the probe that the user chose.
struct ProbeView : PanelState {
  std::int64_t step = -1;  // training step of the probe; -1: the newest probe
  void training_changed() override { step = -1; }
};

/// Shows the next probe (`by` = 1) or the previous one (-1); with `to_end`, the last probe in that direction. The newest probe is followed
/// while the training run continues. Needs an open training run.
void walk_probes(Context& context, int by, bool to_end);

}  // namespace ui
