#pragma once

#include "ui/panel.h"

namespace ui {

extern const Panel kThoughtsPanel;

}  // namespace ui
