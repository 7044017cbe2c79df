#include "engine/schedule/race_models.h"

#include <map>

namespace engine {

std::vector<RunModels> models_of_lanes(
    ModelStore& store,
    const ModelRequest& request,
    const Helpers& helpers,
    std::span<const LaneRequest> lanes,
    const std::function<LoadProgress(const std::string& name)>& progress,
    const std::function<void(const RunModels&)>& loaded) {
  const auto model_of = [&](const LaneRequest& lane) {
    return lane.model.empty() ? request.model : lane.model;
  };
  std::map<std::string, std::vector<std::string>> decoders;  // of each model
  for (const LaneRequest& lane : lanes) decoders[model_of(lane)].push_back(lane.decoder);
  const auto request_of = [&](const std::string& name) {
    ModelRequest own = request;
    own.model = name;
    return own;
  };
  store.keep_together({});
  if (decoders.size() > 1) {
    std::vector<ModelRequest> requests;
    for (const auto& [name, its] : decoders) requests.push_back(request_of(name));
    store.expect_room(requests);
  }
  std::map<std::string, RunModels> models;
  std::vector<const LoadedModel*> together;
  for (const auto& [name, its] : decoders) {
    Helpers own = helpers;
    if (name != request.model) own.heads.clear();
    const RunModels found = store.get_for(request_of(name), own, its, progress(name));
    if (loaded) loaded(found);
    models.emplace(name, found);
    together.push_back(&found.target);
    if (found.draft) together.push_back(found.draft);
    store.keep_together(together);
  }
  std::vector<RunModels> of_lanes;
  for (const LaneRequest& lane : lanes) of_lanes.push_back(models.at(model_of(lane)));
  return of_lanes;
}

}  // namespace engine
