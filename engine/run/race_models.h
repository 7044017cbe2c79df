// Loads the models of lanes that race. Lanes of the same model share it, and all models stay in
// memory together.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/event/command.h"
#include "engine/store/model_store.h"

namespace engine {

/// Loads every model that is not loaded yet.
/// @param request          for lanes that name no model of their own; for the others with their
///                         model's name
/// @param draft_resources  its heads belong to request.model; a lane's own model has the heads that
///                         its card names
/// @param progress         makes the progress callback for a model's name
/// @param loaded           called once with the models of each name, and again for lanes that need
///                         more; may be empty
/// @param several_texts    each lane decodes several prompts: a SEED lane then gets a draft model
///                         with threads of its own (models_for)
/// @return  one per lane, in order; they stay loaded until the next call of keep_together()
/// @throws Error(Resources)  if memory cannot hold all of them at once
/// @throws Error             as ModelStore::get_for
std::vector<RunModels> models_of_lanes(
    ModelStore& store,
    const ModelRequest& request,
    const DraftResources& draft_resources,
    std::span<const LaneRequest> lanes,
    const std::function<LoadProgress(const std::string& name)>& progress,
    const std::function<void(const RunModels&)>& loaded = {},
    bool several_texts = false);

}  // namespace engine
