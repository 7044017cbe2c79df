// Everything about the selected step or token, and one sentence that says it.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kInspectorPanel;

}  // namespace ui
