// How one unseen prompt is answered while a consistency training goes on: its blocks,
// probe by probe.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kProbeTrajectoryPanel;

/// Moves to the next (1) or the previous (-1) probe; `to_end`: to the last one there is that way.
/// The newest is followed as it comes.
void walk_probes(ViewState& view, const engine::TrainingHistory& history, int by, bool to_end);

}  // namespace ui
