// Makes requests to the engine from the options of generate, compare and reason.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/cli/commands.h"

namespace engine {
struct DraftResources;
struct GenerationDefaults;
struct LoadedModel;
class EarlierTexts;
class Model;
struct PoolFile;
struct ModelRequest;
class ModelStore;
struct RunModels;
struct RunRequest;
struct RunResult;
struct Sampling;
}  // namespace engine

namespace app {

struct Prompt;
/// Options of a decoder by name (engine::OptionValues).
using OptionValues = std::map<std::string, std::string>;

/// The request for the model that the options select.
engine::ModelRequest model_request(const ModelOptions& options);
/// Loads a model, with a progress line.
engine::LoadedModel& load(engine::ModelStore& store, const engine::ModelRequest& request);
/// The draft model and heads that the options name.
engine::DraftResources draft_resources_of(const ModelOptions& options);
/// Loads a model with the draft model and heads that the decoders need.
engine::RunModels load(engine::ModelStore& store,
                       const engine::ModelRequest& request,
                       const engine::DraftResources& draft_resources,
                       const std::vector<std::string>& decoders);
/// Loads the model of each lane of `compare`, in order. Lanes with the same model share it.
/// @param several_texts  as engine::models_of_lanes()
std::vector<engine::RunModels> load_lanes(engine::ModelStore& store,
                                          const GenerationOptions& options,
                                          std::span<const LaneOption> lanes,
                                          bool several_texts);
/// The name or directory of a lane's model.
const std::string& model_of(const LaneOption& lane, const GenerationOptions& options);
/// Loads the models of a decoder that a scheduler runs (engine::make_scheduler).
/// @param options  the decoder's options
engine::RunModels load_scheduled(engine::ModelStore& store,
                                 const engine::ModelRequest& request,
                                 const engine::DraftResources& draft_resources,
                                 const std::string& decoder,
                                 const OptionValues& options);
/// Loads the ranks that a decoder's options request, with a progress line.
/// @param options  the decoder's options
void load_ranks(engine::ModelStore& store,
                engine::RunModels& models,
                const std::string& decoder,
                const OptionValues& options);
/// The lead of a command over the other processes of ranks=mpi, which ends with this object.
using Leading = std::shared_ptr<const void>;
/// With ranks=mpi in a process other than rank 0: follows rank 0's runs to the last one, and returns null. Otherwise the command
/// leads, also alone.
/// @param options  the decoder's options
Leading lead_processes(const engine::RunModels& models,
                       const std::string& decoder,
                       const OptionValues& options);
/// The prompts of --prompt or --prompt-file.
std::vector<Prompt> prompts_of(const GenerationOptions& options);
/// Selects the name=value pairs of `set` that are options of `decoder`; each other pair must be an
/// option of another decoder of `all`.
/// @throws Error(Usage)  a pair without '=', or an option of none of the decoders
OptionValues options_for(const std::string& decoder,
                         const std::vector<std::string>& all,
                         const std::vector<std::string>& set);
/// Validates a decoder's options, including files of token trees, before models are loaded.
/// @throws Error(Usage, BadInput)  the message names decoder, option and value
void check_options(const std::string& decoder, const OptionValues& set);
/// The folder of the bundled token trees.
std::string trees_dir();
/// The sampling that transformers derives from a model's files: greedy unless do_sample is set. If
/// it is set, the defaults are temperature 1 and top_k 50.
engine::Sampling sampling_by_model(const engine::GenerationDefaults& defaults);
/// The request for one prompt and decoder. With --defaults model, options that the command line
/// does not set get their values from the model's files.
engine::RunRequest request_for(const GenerationOptions& options,
                               const Prompt& prompt,
                               const std::string& decoder,
                               const engine::LoadedModel& loaded);
/// Refuses a draft model or heads that no decoder would use.
/// @throws Error(Usage)
void check_draft_resources(const engine::DraftResources& draft_resources,
                           const std::vector<std::string>& decoders);
/// Refuses a file of --pool that no decoder would read.
/// @throws Error(Usage)
void check_pool(const std::string& pool, const std::vector<std::string>& decoders);
/// Reads and tokenizes the file of --pool.
/// @param pool  the file's path; empty: none
/// @return      null: there is none
/// @throws Error(Usage, BadInput)  if the model has no tokenizer, or as engine::read_text_input()
std::shared_ptr<const engine::PoolFile> read_pool(const std::string& pool,
                                                  const engine::Model& model);
/// The options with which a recorded run is repeated. Model, scale and the file of --pool are the
/// recorded ones unless they are given.
/// @throws Error  as engine::load_recording() and engine::recorded_run()
GenerationOptions repeating(GenerationOptions options);
/// If a recorded run is repeated, checks that the models are the recorded ones.
/// @throws Error(Usage)  if they differ
void check_repeated(const GenerationOptions& options, const engine::RunModels& models);
/// If a recorded run is repeated, compares the result with it.
void compare_with_recording(const GenerationOptions& options, engine::RunResult& result);

/// Validates decoders, their options and sampling before models are loaded.
/// @throws Error(Usage)
void check_usage(const GenerationOptions& options);

}  // namespace app
