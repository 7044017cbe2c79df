// The panel Agreement: whether the run's tokens equal those of plain decoding, and the first difference.
#pragma once

namespace ui {

struct Panel;
extern const Panel kAgreementPanel;

}  // namespace ui
