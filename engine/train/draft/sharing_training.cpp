#include "engine/train/draft/sharing_training.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/refuse.h"
#include "engine/checkpoint/model_files.h"
#include "engine/train/core/parameters.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/run/frequent_tokens.h"

namespace engine {
namespace {

/// The output tokens of the checkpoint to resume; empty: there is none, or it has another number.
std::vector<TokenId> tokens_of_checkpoint(const SharingFiles& files, const TrainRecipe& recipe) {
  const std::string path = files.out + "/checkpoint.bin";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const TrainRecipe saved = train_recipe_from(read_checkpoint(path).recipe, path);
  if (std::ssize(saved.output_tokens) != recipe.n_output_tokens) return {};
  return saved.output_tokens;
}

}  // namespace

ModelFiles open_target(const SharingFiles& files,
                       const TrainRecipe& recipe,
                       const FileLimits& limits) {
  if (files.target.empty())
    refuse(files.recipe, "target", in_quotes(recipe.target) + ", which was not found",
           "the model whose embedding the draft shares; name it with --target");
  return open_model(files.target, {.limits = limits});
}

void complete_by_target(const SharingFiles& files, const ModelFiles& target, TrainRecipe& recipe) {
  for (const int layer : recipe.from_layers)
    if (layer >= target.config.n_layers)
      refuse(
          files.recipe, "from_layers", std::to_string(layer),
          "0 to " + std::to_string(target.config.n_layers - 1) + ", the layers of " + target.name);
  recipe.model = target.config;
  recipe.model.n_layers = static_cast<int>(recipe.from_layers.size());
  recipe.model.shares_embedding_of = target.name;
  if (recipe.context > recipe.model.max_seq_len)
    refuse(files.recipe, "context", std::to_string(recipe.context),
           "at most " + std::to_string(recipe.model.max_seq_len) + ", the target's context");
  const int n_tokens = n_tokens_of(target);
  if (recipe.n_output_tokens > n_tokens)
    refuse(files.recipe, "output_tokens", std::to_string(recipe.n_output_tokens),
           "at most " + std::to_string(n_tokens) + ", the target's tokens");
  if (recipe.output_tokens.empty() && recipe.n_output_tokens > 0)
    recipe.output_tokens = tokens_of_checkpoint(files, recipe);
  if (recipe.output_tokens.empty() && recipe.n_output_tokens > 0 && !files.own_texts.empty())
    recipe.output_tokens =
        frequent_tokens(read_own_outputs(files.own_texts, recipe.own_outputs, nullptr), n_tokens,
                        recipe.n_output_tokens);
  if (!recipe.output_tokens.empty() && recipe.output_tokens.back() >= n_tokens)
    refuse(files.recipe, "output_tokens", std::to_string(recipe.output_tokens.back()),
           "0 to " + std::to_string(n_tokens - 1) + ", the target's tokens");
  recipe.model.n_output_tokens = static_cast<int>(recipe.output_tokens.size());
}

std::vector<float> layers_of_target(const ModelFiles& target, const TrainRecipe& recipe) {
  std::vector<float> parameters;
  load_tensors(*target.tensors, recipe.model, parameters, recipe.from_layers);
  return parameters;
}

}  // namespace engine
