#include "engine/run/race_models.h"

#include <map>

#include "engine/event/run_rules.h"
#include "engine/run/scheduler.h"

namespace engine {

std::vector<RunModels> models_of_lanes(
    ModelStore& store,
    const ModelRequest& request,
    const DraftResources& draft_resources,
    std::span<const LaneRequest> lanes,
    const std::function<LoadProgress(const std::string& name)>& progress,
    const std::function<void(const RunModels&)>& loaded,
    bool several_texts) {
  const auto model_of = [&](const LaneRequest& lane) {
    return lane.model.empty() ? request.model : lane.model;
  };
  const auto in_rounds = [&](const LaneRequest& lane) {
    return several_texts && takes_turns(lane.decoder);
  };
  // for each model the decoders of its lanes; SEED lanes that run in rounds are left out
  std::map<std::string, std::vector<std::string>> decoders;
  for (const LaneRequest& lane : lanes) {
    std::vector<std::string>& its = decoders[model_of(lane)];
    if (!in_rounds(lane)) its.push_back(lane.decoder);
  }
  const auto request_of = [&](const std::string& name) {
    ModelRequest own = request;
    own.model = name;
    return own;
  };
  store.keep_together({});
  if (decoders.size() > 1) {
    std::vector<ModelRequest> requests;
    for (const auto& [name, its] : decoders) requests.push_back(request_of(name));
    store.require_room(requests);
  }
  std::vector<const LoadedModel*> together;
  const auto keep = [&](const RunModels& found) {
    if (loaded) loaded(found);
    together.push_back(&found.target);
    if (found.draft) together.push_back(found.draft);
    together.insert(together.end(), found.ranks.begin(), found.ranks.end());
    store.keep_together(together);
    return found;
  };
  const auto draft_resources_of = [&](const std::string& name) {
    DraftResources own = draft_resources;
    if (name != request.model) own.heads.clear();
    return own;
  };
  std::map<std::string, RunModels> models;
  for (const auto& [name, its] : decoders)
    models.emplace(
        name, keep(store.get_for(request_of(name), draft_resources_of(name), its, progress(name))));
  std::vector<RunModels> of_lanes;
  for (const LaneRequest& lane : lanes) {
    const std::string& name = model_of(lane);
    if (in_rounds(lane)) {
      of_lanes.push_back(keep(models_for(store, request_of(name), draft_resources_of(name),
                                         lane.decoder, lane.options, progress(name))));
      continue;
    }
    of_lanes.push_back(models.at(name));
    add_ranks(store, of_lanes.back(), lane.decoder, lane.options, progress(name));
    if (!of_lanes.back().ranks.empty()) keep(of_lanes.back());
  }
  return of_lanes;
}

}  // namespace engine
