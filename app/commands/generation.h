// What generate and compare share: from options to requests.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "app/cli/commands.h"

namespace engine {
struct DraftResources;
struct GenerationDefaults;
struct LoadedModel;
struct ModelRequest;
class ModelStore;
struct RunModels;
struct RunRequest;
struct Sampling;
}  // namespace engine

namespace app {

struct Prompt;
/// Options of a decoder by name (engine::OptionValues).
using OptionValues = std::map<std::string, std::string>;

engine::ModelRequest model_request(const ModelOptions& options);
/// The model, loaded with a progress line.
engine::LoadedModel& load(engine::ModelStore& store, const engine::ModelRequest& request);
/// What a person named to help the model.
engine::DraftResources draft_resources_of(const ModelOptions& options);
/// The same with the draft model and the heads that the decoders need.
engine::RunModels load(engine::ModelStore& store,
                       const engine::ModelRequest& request,
                       const engine::DraftResources& draft_resources,
                       const std::vector<std::string>& decoders);
/// The models of compare's lanes, in order; lanes of one model share it.
/// @param several_texts  as of engine::models_of_lanes()
std::vector<engine::RunModels> load_lanes(engine::ModelStore& store,
                                          const GenerationOptions& options,
                                          std::span<const LaneOption> lanes,
                                          bool several_texts);
/// The model a lane decodes with, by name or directory.
const std::string& model_of(const LaneOption& lane, const GenerationOptions& options);
/// The same for one decoder under a scheduler (engine::make_scheduler).
/// @param options  of the decoder
engine::RunModels load_scheduled(engine::ModelStore& store,
                                 const engine::ModelRequest& request,
                                 const engine::DraftResources& draft_resources,
                                 const std::string& decoder,
                                 const OptionValues& options);
/// Adds the ranks that a decoder's options ask for, with a progress line.
/// @param options  of the decoder
void load_ranks(engine::ModelStore& store,
                engine::RunModels& models,
                const std::string& decoder,
                const OptionValues& options);
std::vector<Prompt> prompts_of(const GenerationOptions& options);
/// name=value pairs that `decoder` knows; the others must be known to another of `all`.
/// @throws Error(Usage)  for a pair without '=' or a name that no decoder of `all` has
OptionValues options_for(const std::string& decoder,
                                 const std::vector<std::string>& all,
                                 const std::vector<std::string>& set);
/// Refuses values that a decoder cannot have, files of trees among them, before anything is loaded.
/// @throws Error(Usage, BadInput)  naming decoder, option and value
void check_options(const std::string& decoder, const OptionValues& set);
/// Where the trees lie that are known by name.
std::string trees_dir();
/// The sampling that transformers derives from a model's files: greedy without do_sample; with it,
/// absent members mean temperature 1 and top_k 50.
engine::Sampling sampling_by_model(const engine::GenerationDefaults& defaults);
/// Under --defaults model, options that were not given take their values from the model's files.
engine::RunRequest request_for(const GenerationOptions& options,
                               const Prompt& prompt,
                               const std::string& decoder,
                               const engine::LoadedModel& loaded);
/// Refuses a draft model or heads that none of the decoders would use.
/// @throws Error(Usage)
void check_draft_resources(const engine::DraftResources& draft_resources,
                           const std::vector<std::string>& decoders);
/// Checks decoders, options and sampling before anything is loaded.
/// @throws Error(Usage)
void check_usage(const GenerationOptions& options);

}  // namespace app
