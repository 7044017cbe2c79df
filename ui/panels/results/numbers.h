// The panel Numbers: four large figures, acceptance by position, and where the time went.
#pragma once

namespace ui {

struct Panel;
extern const Panel kNumbersPanel;

}  // namespace ui
