// A run's settings back in the form, all of them, so that Run repeats it.
#pragma once

#include "engine/event/timeline/timeline.h"
#include "ui/shell/catalog.h"
#include "ui/files/setup_form.h"

namespace ui {

/// Fills the form with what a run had: prompt, decoder, sampling, limits, and how its model was
/// loaded; of a race, its lanes too. A model the catalog lacks is told in form.model_error.
void use_again(SetupForm& form,
               const Catalog& catalog,
               const engine::Timeline& timeline,
               const engine::RunRecord& run);

}  // namespace ui
