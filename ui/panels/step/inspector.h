// The panel Inspector: all facts of the selected step or token, and a sentence that describes it.
#pragma once

#include "ui/prepare/selection.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Panel;
extern const Panel kInspectorPanel;

/// The state of the panel Inspector.
struct InspectorView : PanelState {
  Place pinned;  // the place that stays shown; invalid: nothing is pinned
  void document_changed() override { pinned = {}; }
};

}  // namespace ui
