// The models of lanes that race: lanes of one model share it, and all stay in memory together.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/event/command.h"
#include "engine/store/model_store.h"

namespace engine {

/// Loads what is not there yet, the first time each model is named.
/// @param request   of lanes that name no model of their own; the others differ in the name alone
/// @param helpers   the heads are those of request.model; a lane's own model has those of its card
/// @param progress  of loading the model of a name
/// @param loaded    called with each model's, once, and with those of each lane that has others;
///                  or empty
/// @param several_texts  lanes have several texts at a time: one whose texts take turns at two
///                       models (takes_turns) then has a draft on threads of its own (models_for)
/// @return  of each lane, in order; they stay until the store is told otherwise (keep_together)
/// @throws Error(Resources)  if memory does not hold all of them at once
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
