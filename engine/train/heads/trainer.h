// Trains draft heads on texts that a target wrote. Like train(), a run is a function of (recipe,
// texts, shards, compute, device): it ends with the same bits after it was stopped and resumed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/train/heads/pass.h"
#include "engine/train/heads/recipe.h"
#include "engine/train/run/own_outputs.h"
#include "engine/train/core/trainer.h"

namespace engine {

/// Training and probe texts, and the target.
struct HeadsData {
  Model& target;
  std::vector<float> output, embedding;  // [vocab_size, dim] of the target, f32
  std::vector<OwnOutput> texts, probes;
};

/// Result of a run.
struct HeadsResult {
  bool finished = false;  // false: stopped, resume continues
  std::int64_t step = 0;
  std::int64_t steps_done = 0;  // by this call
  std::int64_t tokens = 0;      // training places, of all steps
  double seconds = 0;
  NamedFigures losses;  // means over the last steps of this call
  std::string compute;
  std::int64_t hidden_bytes = 0;  // of all texts' hidden states
  bool hidden_kept = false;       // true: in memory; false: computed again for every step
  HeadsRanks ranks{0};            // on the probes, if finished
  std::vector<float> parameters;
};

/// Trains until the recipe's end, the stop flag or options.stop_after_step.
/// @param config  heads_config(recipe, the target's)
/// @param device  the opened options.device; null: opens it
/// @throws Error  as train()
HeadsResult train_heads(const HeadsRecipe& recipe,
                        const HeadsConfig& config,
                        const HeadsData& data,
                        const TrainOptions& options,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device = nullptr);

}  // namespace engine
