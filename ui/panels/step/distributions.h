#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kDistributionsPanel;

}  // namespace ui
