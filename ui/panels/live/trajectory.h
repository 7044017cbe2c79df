// The panel Trajectory: the iterations of a Jacobi block as a grid, or Lookahead's window.
#pragma once

#include <set>
#include <span>
#include <utility>

#include "engine/event/event.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct MarkNote;
struct Panel;
extern const Panel kTrajectoryPanel;

/// The state of the panel Trajectory.
struct TrajectoryView : PanelState {
  std::set<std::pair<engine::RunId, int>>
      unfolded;  // earlier blocks whose iterations are shown: run and block
  void document_changed() override { unfolded.clear(); }
};

/// Returns the legend of trajectory grids.
std::span<const MarkNote> trajectory_marks();

}  // namespace ui
