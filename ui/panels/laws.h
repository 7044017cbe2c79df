#pragma once

#include "ui/panel.h"

namespace ui {

extern const Panel kLawsPanel;

}  // namespace ui
