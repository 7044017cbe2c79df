// The panel Lanes: the runs of a race side by side.
#pragma once

#include <map>

#include "engine/event/event.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Panel;
extern const Panel kLanesPanel;

/// The state of the panel Lanes.
struct LanesView : PanelState {
  /// The layout of the lanes' texts. Plain and Selected: tokens with the same index have the same place in all lanes, and the first token
  /// that differs from plain decoding, or from the selected lane, has a mark. Key Y changes it.
  enum class Align { Off, Plain, Selected } align = Align::Off;
  // of aligned texts, which scroll together: the common position, and that of each lane in the last frame, px
  float scroll = 0;
  std::map<engine::RunId, float> scrolled;
  void document_changed() override {
    scroll = 0;
    scrolled.clear();
  }
};
inline constexpr int kAlignments = 3;

}  // namespace ui
