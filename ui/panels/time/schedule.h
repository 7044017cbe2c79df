// SEED's schedule: who drafts, who waits, whom the target judges, of all runs that took part
// together, on one wall clock; and who stands in the queue.
#pragma once

#include "ui/shell/panel.h"

namespace ui {
extern const Panel kSchedulePanel;
}
