// Copies the settings of a run into the form, so that Run repeats it.
#pragma once

namespace engine {
class Timeline;
struct RunRecord;
}  // namespace engine

namespace ui {

struct Catalog;
struct SetupForm;

/// Copies prompt, decoder, sampling, limits and model settings; for a race also its lanes. If the catalog does not list the model,
/// form.model_error says so.
void use_again(SetupForm& form,
               const Catalog& catalog,
               const engine::Timeline& timeline,
               const engine::RunRecord& run);

}  // namespace ui
