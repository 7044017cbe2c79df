// The runs of this session, or of the opened recording.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kRunsPanel;

}  // namespace ui
