// The n-gram pool: what is in it, where it came from, and what it gave.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kPoolPanel;

}  // namespace ui
