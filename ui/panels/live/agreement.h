// The panel Agreement: compares the run's tokens with those of plain decoding and shows the first difference.
#pragma once

namespace ui {

struct Panel;
extern const Panel kAgreementPanel;

}  // namespace ui
