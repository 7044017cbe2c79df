#include "engine/train/heads/train.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/checkpoint/shared/target_output.h"
#include "engine/checkpoint/tensor_source.h"
#include "engine/train/heads/card.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/run/frequent_tokens.h"
#include "engine/train/run/training_loop.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

void make_directory(const std::string& directory) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed)
    throw Error(ErrorCode::Resources, directory + ": cannot be made: " + failed.message());
}

OutputsPlan probe_plan(const HeadsRecipe& recipe) {
  OutputsPlan plan = recipe.outputs;
  // Requests of the split dev are from the training parts of their sets, so no evaluation reads them.
  if (!plan.chat) plan.mixture = generated_part(plan.mixture);
  plan.count = recipe.probe_texts;
  plan.split = Split::Dev;
  plan.drop_wrong = plan.check = false;
  return plan;
}

void refuse_many_outputs(const std::string& path,
                         const HeadsRecipe& recipe,
                         const HeadsConfig& config) {
  if (recipe.output_tokens <= config.vocab_size) return;
  throw Error(ErrorCode::BadInput, path + ": output_tokens: found " +
                                       std::to_string(recipe.output_tokens) +
                                       ", expected at most the target's vocabulary, " +
                                       std::to_string(config.vocab_size));
}

/// Chooses the tokens that the heads rank, and reads the target's matrices.
void read_target(const HeadsTarget& target,
                 const HeadsRecipe& recipe,
                 HeadsConfig& config,
                 HeadsData& data) {
  if (recipe.output_tokens > 0)
    config.output_tokens = frequent_tokens(data.texts, config.vocab_size, recipe.output_tokens);
  data.output = f32_of(output_rows(target.files, config.output_tokens));
  if (config.by_first_layer)
    data.first_layer = std::make_shared<FirstLayer>(
        load_first_layer(target.model.device(), target.files, {.dtype = target.model.dtype()}));
  else if (config.kind == HeadsKind::Chimera)
    data.embedding = f32_of(target.files.tensors->read("model.embed_tokens.weight"));
}

void write_heads_directory(const HeadsRequest& request,
                           const HeadsTarget& target,
                           const HeadsTraining& training) {
  const HeadsLayout layout(training.config);
  write_heads(request.out, training.config, *as_tensors(training.result.parameters, layout.parts),
              kernels::DType::BF16);
  const std::string measured_on =
      "greedy text of " + target.files.name +
      " on prompts of the split dev that no training reads, along the text's own tokens";
  write_whole_file(request.out + "/accuracies.json",
                   accuracies_json(training.result, training.n_prompts, measured_on));
  write_heads_card(request.out, training, target.files.path, request.data);
}

}  // namespace

std::string own_texts_path(const std::string& directory) {
  return directory + "/own_outputs.jsonl";
}

std::string generated_part(const std::string& mixture) {
  auto parts = nlohmann::json::parse(mixture);
  parts.erase("real");
  if (parts.empty())
    throw Error(ErrorCode::BadInput,
                "own_outputs: mixture: expected a generated task, for prompts that no training "
                "reads");
  return parts.dump();
}

namespace {

/// [heads][ranks] shares of the places.
nlohmann::ordered_json shares_of(const HeadsRanks& ranks) {
  auto heads = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < ranks.n.size(); k++) {
    auto shares = nlohmann::ordered_json::array();
    for (const std::int64_t hits : ranks.hits[k])
      shares.push_back(ranks.n[k] ? static_cast<double>(hits) / static_cast<double>(ranks.n[k])
                                  : 0.0);
    heads.push_back(std::move(shares));
  }
  return heads;
}

}  // namespace

std::string accuracies_json(const HeadsResult& result,
                            int n_prompts,
                            const std::string& measured_on) {
  nlohmann::ordered_json object = {{"heads", shares_of(result.ranks.all)},
                                   {"after_right", shares_of(result.ranks.after_right)},
                                   {"prompts", n_prompts},
                                   {"measured_on", measured_on}};
  if (result.self_fed) object["free_running"] = shares_of(*result.self_fed);
  return object.dump(2) + "\n";
}

bool make_own_texts(const NamedTarget& target,
                    const OutputsPlan& plan,
                    const std::string& path,
                    const std::string& data,
                    bool resume,
                    const HeadsCallbacks& callbacks) {
  if (!resume && fs::exists(path)) {
    throw Error(
        ErrorCode::Usage,
        path +
            ": this directory has saved texts; continue with --resume, or name another directory");
  }
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    make_directory(folder.string());
  const TrainCallbacks& training = callbacks.training;
  if (training.notice)
    training.notice(target.name + " writes its own texts on " + std::to_string(plan.count) +
                    " prompts of the split " + std::string(split_name(plan.split)) + " to " + path);
  return write_own_outputs(
      target, plan, path, data,
      [&](const OutputsProgress& progress) {
        if (callbacks.writing) callbacks.writing(progress);
        return !(training.stop && training.stop->load());
      },
      training.notice);
}

HeadsTraining make_heads(const HeadsRequest& request,
                         const HeadsTarget& target,
                         const HeadsCallbacks& callbacks,
                         std::unique_ptr<kernels::Device> device) {
  if (!device) device = open_training_device(request.device);
  HeadsTraining training;
  training.recipe = read_heads_recipe(request.recipe, request.kind);
  training.config = heads_config(training.recipe, target.files.config);
  training.config.base = target.files.name;
  refuse_many_outputs(request.recipe, training.recipe, training.config);
  const HeadsLayout fits(training.config);  // throws for a bad shape before the long work begins
  make_directory(request.out);
  // Refuses a checkpoint of another recipe before the target writes texts.
  if (request.resume) checkpoint_found(to_json(training.recipe), request.out, true, {});
  const NamedTarget writer{target.model, target.files.name, target.weights_hash};
  const OutputsPlan probes = probe_plan(training.recipe);
  const std::string probe_path = request.out + "/probe_outputs.jsonl";
  std::string texts = request.texts;
  if (texts.empty()) {
    texts = own_texts_path(request.out);
    if (!make_own_texts(writer, training.recipe.outputs, texts, request.data, request.resume,
                        callbacks))
      return training;
  }
  if (!make_own_texts(writer, probes, probe_path, probes.chat ? request.data : std::string(),
                      request.resume, callbacks))
    return training;
  HeadsData data{.target = target.model, .output = {}, .embedding = {}, .texts = {}, .probes = {}};
  data.texts = read_own_outputs(texts, training.recipe.outputs, &writer);
  data.probes = read_own_outputs(probe_path, probes, &writer);
  training.n_prompts = static_cast<int>(data.probes.size());
  read_target(target, training.recipe, training.config, data);
  TrainOptions options;
  options.n_threads = request.n_threads;
  options.resume = request.resume;
  options.directory = request.out;
  training.result = train_heads(training.recipe, training.config, data, options, callbacks.training,
                                std::move(device));
  // A run that was killed while it wrote its result has a final checkpoint, but no card yet.
  const bool written = training.result.steps_done == 0 && result_is_written(request.out);
  if (written && callbacks.training.notice)
    callbacks.training.notice(
        request.out +
        " is already finished; to continue, increase epochs or minutes in the recipe");
  if (training.result.finished && !written) write_heads_directory(request, target, training);
  return training;
}

}  // namespace engine
