// Trains draft heads on texts that a target wrote. Like train(), a run is a function of (recipe,
// texts, shards, engine of products and device), and one that was stopped and resumed ends with the same bits.
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

/// What heads learn from and are measured on, and the target they are for.
struct HeadsData {
  Model& target;
  std::vector<float> output, embedding;  // [vocab_size, dim] of the target, f32
  std::vector<OwnOutput> texts, probes;
};

struct HeadsResult {
  bool finished = false;  // false: stopped, resume continues
  std::int64_t step = 0;
  std::int64_t steps_done = 0;  // by this call
  std::int64_t tokens = 0;      // places learnt from, all steps
  double seconds = 0;
  NamedFigures losses;  // of the last steps of this call, means
  std::string compute;
  std::int64_t hidden_bytes = 0;  // of all texts' hidden states
  bool hidden_kept = false;       // in memory; else they were made again each time
  HeadsRanks ranks{0};            // on the probes, where finished
  std::vector<float> parameters;
};

/// @param config  heads_config(recipe, the target's)
/// @param device  options.device, opened before; null: it is opened here
/// @throws Error  as train()
HeadsResult train_heads(const HeadsRecipe& recipe,
                        const HeadsConfig& config,
                        const HeadsData& data,
                        const TrainOptions& options,
                        const TrainCallbacks& callbacks,
                        std::unique_ptr<kernels::Device> device = nullptr);

}  // namespace engine
