// The panel What if: the speed-up of a recorded run with other sizes and other costs of a row.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/lab/what_if.h"
#include "ui/prepare/time/curves.h"
#include "ui/shell/panel_state.h"
#include "ui/widgets/chart.h"

namespace ui {

using engine::kKnobs;
using engine::Knob;
using engine::kRowCosts;
using engine::RecordedShape;
using engine::RowCost;
using engine::WhatIf;
using engine::WhatIfSizes;

/// The user's choices.
struct WhatIfView : PanelState {
  engine::RunId run = 0;
  WhatIfSizes sizes;
  WhatIfSizes last_recorded;  // those of the run when `sizes` were compared last
  RowCost cost = RowCost::Recorded;
  Knob over = Knob::Depth;  // the x axis of the chart
  ChartAxis x;
  // The results, and the version of the data and the choices that they were computed from.
  WhatIf chosen, recorded;
  std::vector<Curve> curves;  // of the chart, one for each cost
  std::uint64_t version = 0;
  WhatIfSizes computed;
  RowCost computed_cost = RowCost::Recorded;
  Knob computed_over = Knob::Depth;
  void document_changed() override { run = 0; }
};

}  // namespace ui
