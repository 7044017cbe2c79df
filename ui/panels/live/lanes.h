// Compare's columns: one lane each, the same order of numbers in every one.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kLanesPanel;

}  // namespace ui
