// The panels Loss, Probes and Speed: curves of a training run.
#pragma once

#include "ui/prepare/training.h"
#include "ui/shell/panel_state.h"
#include "ui/widgets/chart.h"

namespace ui {

struct Panel;
extern const Panel kLossPanel;
extern const Panel kProbesPanel;
extern const Panel kPacePanel;

/// The user's choices for the charts.
struct ChartsView : PanelState {
  TrainingAxis axis = TrainingAxis::Steps;
  bool log = true;  // the loss axis is logarithmic
  ChartAxis x;      // of all charts of the screen
  void training_changed() override { x = {}; }
};

}  // namespace ui
