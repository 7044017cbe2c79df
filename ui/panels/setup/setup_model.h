// The part of Setup that says with which model, which helpers of it and on what to run.
#pragma once

#include "ui/shell/context.h"

namespace ui {

void setup_model_part(Context& context);

}  // namespace ui
