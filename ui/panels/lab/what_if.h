// The panel What if: the speed-up of a recorded run with other sizes and other costs of a row.
#pragma once

#include "ui/prepare/lab/what_if.h"
#include "ui/shell/panel_state.h"
#include "ui/widgets/chart.h"

namespace ui {

/// The user's choices.
struct WhatIfView : PanelState {
  engine::RunId run = 0;
  Sizes sizes;
  RowCost cost = RowCost::Recorded;
  Knob over = Knob::Depth;  // the x axis of the chart
  ChartAxis x;
  void document_changed() override { run = 0; }
};

}  // namespace ui
