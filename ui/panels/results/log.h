// The panel Log: notices, failures and dropped payloads.
#pragma once

namespace ui {

struct Panel;
extern const Panel kLogPanel;

}  // namespace ui
