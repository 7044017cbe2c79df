// The settings of the simulated schedule, above the lanes of the panel Schedule.
#pragma once

namespace engine {
struct Schedule;
}

namespace ui {

struct Context;
struct SimulationForm;

/// Draws the settings and changes `form`.
/// @param recorded  its mean stage times and number of branches are the initial values
void simulation_settings(Context& context, const engine::Schedule& recorded, SimulationForm& form);

}  // namespace ui
