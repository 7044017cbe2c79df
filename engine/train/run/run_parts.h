// What training runs of every kind begin with: an engine of products, threads, a learning rate.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/config.h"
#include "engine/train/ops/linear.h"

namespace engine {

/// @param name  "f32", "bf16-amx", "bf16-onednn", or "auto": the fastest here that the shape fits.
///              Of a run that was on a GPU "f32-cuda", which is f32, or "bf16-cuda", which is auto
Compute compute_named(const std::string& name, const ModelConfig& model);
/// The same on a GPU: f32 where that is named, else bf16.
Compute gpu_compute_named(const std::string& name);

/// @param asked  0: as many as the machine runs at once
int usable_threads(int asked);

/// Warm-up by steps, then a cosine from the peak to `final_share` of it.
/// @param step  from 1
/// @param done  0 to 1
double cosine_lr(double peak, std::int64_t step, double done, int warmup_steps, double final_share);

}  // namespace engine
