// Trains draft heads on texts that a target wrote. As in train(), the result is a function of
// (recipe, texts, shards, compute, device); stopping and resuming a run does not change its bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/train/core/trainer.h"
#include "engine/train/heads/pass.h"
#include "engine/train/heads/recipe.h"
#include "engine/train/run/own_outputs.h"

namespace engine {

/// Training and probe texts, and the target.
struct HeadsData {
  Model& target;
  // the target's matrices in f32, as the heads read them: [n_outputs, dim], [vocab_size, dim]
  std::vector<float> output, embedding;
  std::vector<OwnOutput> texts, probes;
  std::shared_ptr<FirstLayer> first_layer = nullptr;  // for heads whose tokens it encodes
};

/// Result of a run.
struct HeadsResult {
  bool finished = false;  // false: stopped, resume continues
  std::int64_t step = 0;
  std::int64_t steps_done = 0;  // by this call
  std::int64_t tokens = 0;      // number of places trained on, over all steps
  double seconds = 0;
  NamedFigures losses;  // mean losses over the last steps of this call
  std::string compute;
  std::int64_t hidden_bytes = 0;       // size of the hidden states of all texts
  bool hidden_kept = false;            // false: every step computes the states again
  MeasuredRanks ranks{0};              // measured on the probe texts, if finished
  std::optional<HeadsRanks> self_fed;  // Chimera: the same, if chains hold the heads' own guesses
  std::vector<float> parameters;
};

/// A finished training of heads, for its card.
struct HeadsTraining {
  HeadsRecipe recipe;
  HeadsConfig config;
  HeadsResult result;
  int n_prompts = 0;  // unseen prompts on which the accuracies were measured
};

/// Trains until the recipe's end, the stop flag or options.stop_after_step.
/// @param config  the result of heads_config(recipe, config of the target)
/// @param device  the opened options.device; null: opens it
/// @throws Error  as train()
HeadsResult train_heads(const HeadsRecipe& recipe,
                        const HeadsConfig& config,
                        const HeadsData& data,
                        const TrainOptions& options,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device = nullptr);

}  // namespace engine
