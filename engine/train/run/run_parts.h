// Parts of every training run: the compute mode, the number of threads, the learning rate.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/config.h"
#include "engine/train/ops/linear.h"

namespace engine {

/// The compute mode on the CPU.
/// @param name  "f32", "bf16-amx", "bf16-onednn", or "auto": the fastest mode that supports the
///              shape. Checkpoints of GPU runs have other names, which are accepted too: "f32-cuda"
///              means "f32", "bf16-cuda" means "auto"
Compute compute_named(const std::string& name, const ModelConfig& model);
/// The compute mode on a GPU: f32 if that is named, else bf16.
Compute gpu_compute_named(const std::string& name);

/// Number of threads to use.
/// @param wanted  0: all hardware threads
int usable_threads(int wanted);

/// Learning rate: linear warm-up, then a cosine from the peak to `final_share` of it.
/// @param step  from 1
/// @param done  0 to 1
double cosine_lr(double peak, std::int64_t step, double done, int warmup_steps, double final_share);

}  // namespace engine
