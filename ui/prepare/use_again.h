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

/// Returns true if the recorded run or a lane of its race chose sizes that can be repeated.
bool has_recorded_sizes(const engine::Timeline& timeline, const engine::RunRecord& run);
/// Does the same as use_again() and makes the next run, or race, take the sizes that the recorded one chose. So it makes the same steps and, even
/// with rejection sampling, the same tokens.
void use_with_sizes(SetupForm& form,
                    const Catalog& catalog,
                    const engine::Timeline& timeline,
                    const engine::RunRecord& run);
/// Lets later runs choose their sizes by themselves.
void forget_sizes(SetupForm& form);

}  // namespace ui
