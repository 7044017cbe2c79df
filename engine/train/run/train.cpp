#include "engine/train/run/train.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "engine/base/types.h"
#include "engine/checkpoint/draft/sharing_draft.h"
#include "engine/checkpoint/model_files.h"
#include "engine/data/mixture.h"
#include "engine/model/model.h"
#include "engine/train/core/parameters.h"
#include "engine/train/core/shuffled_order.h"
#include "engine/train/draft/shared_embedding.h"
#include "engine/train/draft/sharing_training.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/run/evaluate.h"
#include "engine/train/run/model_card.h"
#include "engine/train/run/own_outputs.h"
#include "engine/train/run/texts.h"
#include "engine/train/run/tokenizer_training.h"
#include "engine/train/run/training_loop.h"

namespace engine {
namespace {

TrainRecipe recipe_for(const std::string& path, const Tokenizer& tokenizer) {
  TrainRecipe recipe = read_train_recipe(path);
  // Rounds the vocabulary up to a multiple that products need; no token uses the additional rows.
  recipe.model.vocab_size = (tokenizer.vocab_size() + 31) / 32 * 32;
  recipe.model.bos_id = tokenizer.bos_id();
  recipe.model.eos_ids = {*tokenizer.eos_id()};
  return recipe;
}

/// A recipe with the shape of its model, and the models that this follows from.
struct Setup {
  TrainRecipe recipe;
  ModelFiles target;  // of a draft that shares its embedding
  std::shared_ptr<const Tokenizer> tokenizer;
};

Setup setup_of(const TrainRequest& request) {
  Setup setup{.recipe = read_train_recipe(request.recipe), .target = {}, .tokenizer = {}};
  if (setup.recipe.shares_embedding) {
    const SharingFiles files{request.recipe, request.target, request.out, request.own_texts};
    setup.target = open_target(files, setup.recipe, request.limits);
    setup.tokenizer = setup.target.tokenizer;
    complete_by_target(files, setup.target, setup.recipe);
  } else {
    setup.tokenizer = training_tokenizer(request.tokenizer, request.limits);
    setup.recipe = recipe_for(request.recipe, *setup.tokenizer);
  }
  return setup;
}

std::vector<float> weights_to_start_from(const std::string& directory,
                                         const Setup& setup,
                                         const FileLimits& limits) {
  const TrainRecipe& recipe = setup.recipe;
  if (directory.empty()) return layers_of_target(setup.target, recipe);
  const ModelFiles model =
      open_model(directory, {.needs_tokenizer = false,
                             .limits = limits,
                             .target = recipe.shares_embedding ? &setup.target : nullptr});
  const ModelConfig &have = model.config, &want = recipe.model;
  const auto shape = [](const ModelConfig& c) {
    return std::vector<int>{c.n_layers,   c.dim,      c.hidden_dim, c.n_heads,
                            c.n_kv_heads, c.head_dim, c.vocab_size};
  };
  if (shape(have) != shape(want)) {
    throw Error(ErrorCode::BadInput,
                directory + ": has another shape than the recipe's model (" +
                    std::to_string(have.n_layers) + " layers x " + std::to_string(have.dim) +
                    ", vocabulary " + std::to_string(have.vocab_size) + "; the recipe has " +
                    std::to_string(want.n_layers) + " x " + std::to_string(want.dim) +
                    ", vocabulary " + std::to_string(want.vocab_size) + ")");
  }
  std::vector<float> parameters;
  load_tensors(*model.tensors, want, parameters);
  return parameters;
}

// An endless stream of the target's texts, in a new order in every epoch.
TokenSource own_texts(const TrainRequest& request, const TrainRecipe& recipe) {
  const auto outputs = std::make_shared<const std::vector<OwnOutput>>(
      read_own_outputs(request.own_texts, recipe.own_outputs, nullptr));
  for (const OwnOutput& output : *outputs) {
    for (const TokenId token : output.tokens) {
      if (token >= recipe.model.vocab_size)
        throw Error(ErrorCode::BadInput,
                    request.own_texts + ": token " + std::to_string(token) +
                        " is not in the tokenizer; name the target's tokenizer with --tokenizer");
    }
  }
  if (outputs->empty())
    throw Error(ErrorCode::BadInput,
                request.own_texts + ": none of its texts can be used for training");
  const auto order = std::make_shared<const ShuffledOrder>(outputs->size(), recipe.seed);
  return [outputs, order](std::int64_t index) {
    const OwnOutput& output = (*outputs)[order->at(index)];
    return TokenText{.tokens = output.tokens, .n_prompt = output.n_prompt};
  };
}

// Measures the share of unseen problems that the current weights answer correctly.
class AccuracyProbe {
 public:
  AccuracyProbe(const TrainRecipe& recipe,
                const TrainingStream& stream,
                std::shared_ptr<const Tokenizer> tokenizer,
                const TrainRequest& request,
                const std::atomic<bool>* stop)
      : device_(request.device), n_threads_(request.n_threads), stop_(stop) {
    files_.name = recipe.name;
    files_.config = recipe.model;
    files_.tokenizer = std::move(tokenizer);
    settings_.split = Split::Dev;
    settings_.levels = recipe.probe_problems > 1 ? std::vector{1, 2} : std::vector{1};
    settings_.n_problems = std::max(1, recipe.probe_problems / 2);
    settings_.entropy = false;
    for (const TrainingStream::Share& share : stream.shares())
      if (share.part != "real" && share.part != "plain") settings_.tasks.push_back(share.part);
  }

  NamedFigures operator()(const std::vector<float>& parameters) const {
    if (settings_.tasks.empty()) return {};
    ModelFiles files = files_;
    files.tensors = as_tensors(parameters, files_.config);
    auto device = open_training_device(device_);
    if (!device) device = kernels::open_cpu(n_threads_);
    const auto model = Model::load(*device, files, {.dtype = kernels::DType::BF16});
    const Evaluation evaluation =
        evaluate(*model, settings_, [this](int, int) { return !(stop_ && stop_->load()); });
    return evaluation.complete ? accuracies_of(evaluation) : NamedFigures();
  }

 private:
  static NamedFigures accuracies_of(const Evaluation& evaluation) {
    std::map<std::string, std::pair<int, int>> right;  // by task: correct answers, checked answers
    for (const TaskScore& score : evaluation.scores) {
      right[score.task].first += score.n_correct;
      right[score.task].second += score.n_checked;
    }
    NamedFigures figures = {{"accuracy", 0}};
    for (const auto& [task, counts] : right) {
      if (counts.second > 0)
        figures.emplace_back("accuracy, " + task,
                             static_cast<double>(counts.first) / counts.second);
    }
    if (figures.size() == 1) return {};  // no checker could run
    for (std::size_t i = 1; i < figures.size(); i++)
      figures[0].second += figures[i].second / static_cast<double>(figures.size() - 1);
    return figures;
  }

  ModelFiles files_;
  EvaluationSettings settings_;
  std::string device_;
  int n_threads_;
  const std::atomic<bool>* stop_;  // the stop flag of the callbacks, which outlive the run
};

void write_result(const TrainRecipe& recipe,
                  const std::vector<float>& parameters,
                  const TrainRequest& request) {
  if (recipe.shares_embedding)
    return write_sharing_draft(request.out, recipe.model, *as_tensors(parameters, recipe.model),
                               recipe.output_tokens, kernels::DType::BF16);
  write_model(request.out, recipe.model, *as_tensors(parameters, recipe.model),
              kernels::DType::BF16, request.tokenizer);
}

}  // namespace

TokenizerResult train_tokenizer(const TrainRequest& request, const TrainCallbacks& callbacks) {
  const auto start = std::chrono::steady_clock::now();
  const TokenizerRecipe recipe = read_tokenizer_recipe(request.recipe);
  const TrainingStream stream(recipe.mixture, recipe.seed, request.data);
  TokenizerTraining settings;
  settings.vocab_size = recipe.vocab_size;
  settings.sample_bytes = recipe.sample_bytes;
  if (request.n_threads > 0) settings.n_threads = request.n_threads;
  if (callbacks.notice) {
    callbacks.notice("reading " + std::to_string(recipe.sample_bytes / 1'000'000) +
                     " MB of the mixture");
  }
  std::int64_t bytes = 0, reported = 0;
  const auto text = [&](std::int64_t index) {
    if (callbacks.stop && callbacks.stop->load()) {
      throw Error(ErrorCode::Cancelled, "tokenizer: stopped; nothing was written");
    }
    const TrainingText one = stream.text(index);
    std::string whole = one.prompt + one.completion;
    bytes += static_cast<std::int64_t>(whole.size());
    if (callbacks.notice && bytes - reported > 5'000'000) {
      reported = bytes;
      callbacks.notice("read " + std::to_string(bytes / 1'000'000) + " MB");
    }
    return whole;
  };
  const auto learning = [&](bool begins) {
    if (callbacks.unstoppable) callbacks.unstoppable(begins);
    if (begins && callbacks.notice) {
      callbacks.notice("learning a vocabulary of " + std::to_string(recipe.vocab_size) +
                       "; Ctrl+C ends that at once, and nothing is written");
    }
  };
  learn_tokenizer(settings, text, request.out, learning);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {.vocab_size = recipe.vocab_size, .sample_bytes = bytes, .seconds = took.count()};
}

TrainResult train_model(const TrainRequest& request,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device) {
  const Setup setup = setup_of(request);
  const auto& tokenizer = setup.tokenizer;
  const TrainRecipe& recipe = setup.recipe;
  const bool from_target = recipe.own_outputs.count > 0;
  std::optional<TrainingStream> stream;  // none if the prompts are chat requests
  if (!recipe.own_outputs.chat)
    stream.emplace(from_target ? recipe.own_outputs.mixture : recipe.mixture,
                   from_target ? recipe.own_outputs.seed : recipe.seed, request.data);
  TokenSource texts = [&](std::int64_t index) {
    return tokenized(*tokenizer, stream->text(index));
  };
  if (from_target) texts = own_texts(request, recipe);
  TrainOptions options;
  options.n_threads = request.n_threads;
  options.device = request.device;
  options.resume = request.resume;
  options.directory = request.out;
  if (!request.from.empty() || recipe.shares_embedding)
    options.start_from = weights_to_start_from(request.from, setup, request.limits);
  SharedEmbedding shared;
  if (recipe.shares_embedding) {
    shared = shared_embedding(setup.target, recipe.output_tokens);
    options.shared = &shared;
  }
  TrainCallbacks probed = callbacks;
  if (!probed.probe && recipe.probe_minutes > 0)
    probed.probe = AccuracyProbe(recipe, *stream, tokenizer, request, callbacks.stop);
  const TrainResult result = train(recipe, texts, options, probed, std::move(device));
  if (!result.finished) return result;
  const bool before = result.steps_done == 0;
  if (before && result_is_written(request.out)) {
    if (callbacks.notice)
      callbacks.notice(
          request.out +
          " is already finished; to continue, increase tokens or minutes in the recipe");
    return result;
  }
  if (before && callbacks.notice)
    callbacks.notice(request.out + ": all steps are done; writing the result");
  write_result(recipe, result.parameters, request);
  write_model_card(request.out, recipe, result,
                   stream ? stream->shares() : shares_of_prompts(recipe.own_outputs, request.data),
                   request.from, request.target);
  return result;
}

void check_checkpoint(const TrainRequest& request) {
  const Setup setup = setup_of(request);
  if (request.resume) checkpoint_found(to_json(setup.recipe), request.out, true, {});
}

ExportResult export_checkpoint(const TrainRequest& request) {
  const Setup setup = setup_of(request);
  const TrainRecipe& recipe = setup.recipe;
  const std::string path = request.out + "/checkpoint.bin";
  const auto found = checkpoint_found(to_json(recipe), request.out, true, {});
  if (!found)
    throw Error(ErrorCode::BadInput, path +
                                         ": not found; --export writes the last checkpoint of a "
                                         "training; name its directory with --out");
  const Checkpoint& checkpoint = *found;
  if (checkpoint.parameters.size() != static_cast<std::size_t>(ParameterLayout(recipe.model).n)) {
    throw Error(ErrorCode::BadInput, path + ": holds a model of another shape than the recipe's");
  }
  write_result(recipe, checkpoint.parameters, request);
  return {.step = checkpoint.step,
          .tokens = checkpoint.tokens,
          .seconds = checkpoint.seconds,
          .compute = checkpoint.compute};
}

}  // namespace engine
