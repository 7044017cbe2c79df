// Trains a model on the texts of a recipe. If the length is given in tokens, the result is a
// function of (recipe, texts, shards, compute, device), and stopping and resuming a run does not
// change its bits. If the length is given in minutes, the learning rate follows the clock, so two
// runs differ.
#pragma once

#include <memory>
#include <string>

#include "engine/train/core/training.h"
#include "engine/train/run/recipe.h"
#include "kernels/device.h"

namespace engine {

/// Opens the device with this name (TrainOptions::device). @return  null for the CPU
/// @throws Error(Device)  if it is not available
std::unique_ptr<kernels::Device> open_training_device(const std::string& name);

/// Trains until the recipe's end, the stop flag or options.stop_after_step.
/// @param recipe  with model.vocab_size set
/// @param device  the opened options.device; null: opens it
/// @throws Error(Usage)      if the directory holds a checkpoint and options.resume is false
/// @throws Error(BadInput)   if the checkpoint to resume is damaged or belongs to another recipe,
///                           or if a text has a token outside the vocabulary
/// @throws Error(Resources)  if the directory cannot be written
/// @throws Error(Device)     if the device is not available or fails, or if
///                           TrainingLoop::kMaxSkippedSteps consecutive losses or gradients are not finite
TrainResult train(const TrainRecipe& recipe,
                  const TokenSource& texts,
                  const TrainOptions& options,
                  const TrainCallbacks& callbacks,
                  std::unique_ptr<kernels::Device> device = nullptr);

}  // namespace engine
