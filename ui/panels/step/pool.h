// The panel Pool: the n-gram pool at the playhead, its candidates and their results.
#pragma once

#include <string>

#include "ui/prepare/tokens/pool_order.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Panel;
extern const Panel kPoolPanel;

/// The state of the panel Pool.
struct PoolView : PanelState {
  PoolOrder order = PoolOrder::Newest;
  std::string filter;  // only n-grams that contain it are shown; empty: all
};

}  // namespace ui
