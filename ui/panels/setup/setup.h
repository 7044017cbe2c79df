// What to run: prompt, decoder and its options, sampling, model; what cannot be chosen says why.
#pragma once

#include "ui/shell/panel.h"

namespace ui {

extern const Panel kSetupPanel;

}  // namespace ui
