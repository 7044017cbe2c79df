// The panel Schedule: SEED's branches, target and queue, for all runs of a schedule together on the wall clock.
#pragma once

#include "ui/prepare/selection.h"
#include "ui/prepare/time/simulation_form.h"
#include "ui/prepare/time/time_range.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Context;
struct Panel;
struct ScheduleLanes;
extern const Panel kSchedulePanel;

/// The state of the panel Schedule.
struct ScheduleView : PanelState {
  TimeRange range;            // ns of wall time since the first run started
  SimulationForm simulation;  // the settings of the simulator
  TimeRange simulated;        // range of the simulated schedule, ns since its start
  Place followed;             // the selected place when the panel was drawn last
  void document_changed() override {
    range = simulated = {};
    simulation = {};
    followed = {};
  }
};

/// Returns the schedule that the selected run belongs to, prepared for drawing.
const ScheduleLanes& schedule_shown(Context& context);
/// Zooms the schedule to a step, if the step is part of it.
void zoom_schedule_to(Context& context, const Place& place);

}  // namespace ui
