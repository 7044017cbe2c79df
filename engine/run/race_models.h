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
/// @param request          the model request of lanes that name no model; lanes with their own
///                         model use it with that model's name
/// @param draft_resources  these heads belong to request.model; a lane's own model uses the heads
///                         that its card names
/// @param progress         returns the progress callback for the model with this name
/// @param loaded           called with the models of each name after they are loaded, and again if
///                         a later lane needs a further draft model or heads; may be empty
/// @param several_texts    each lane decodes several prompts: a SEED lane then gets a draft model
///                         with threads of its own (models_for)
/// @return  the models of each lane, in order; they stay loaded until the next call of
///          keep_together()
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
