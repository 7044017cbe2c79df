// The part of Setup that chooses the model, its draft resources and the device.
#pragma once

namespace ui {

struct Context;

/// Draws the rows of the model.
void setup_model_part(Context& context);

}  // namespace ui
