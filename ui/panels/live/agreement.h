// Whether the run's tokens are those of plain decoding, and where they first differ.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kAgreementPanel;

}  // namespace ui
