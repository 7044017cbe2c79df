// The panel Machine: samples of the device, its threads and the memory; for a GPU also what its driver reports.
#pragma once

namespace ui {

struct Panel;
extern const Panel kMachinePanel;

}  // namespace ui
