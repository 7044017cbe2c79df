// What the engine said: notices, failures, dropped payloads.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kLogPanel;

}  // namespace ui
