// The panel P/Q: the probability of each proposal under draft and target, and its verification result.
#pragma once

#include "ui/shell/panel_state.h"

namespace ui {

struct Panel;
extern const Panel kDistributionsPanel;

/// The state of the panel P/Q.
struct DistributionsView : PanelState {
  float temperature = 0;  // temperature of the recomputed distributions; 0: as recorded
  void document_changed() override { temperature = 0; }
};

}  // namespace ui
