// The memory that a model needs, computed before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/config.h"
#include "kernels/dtype.h"
#include "kernels/ops.h"

namespace engine {

struct HeadsConfig;  // engine/checkpoint/heads_files.h
struct ModelFiles;   // engine/checkpoint/opened_model.h

/// Numbers of bytes, as doubles, because an extreme scale may need more than 2^63.
struct MemoryPlan {
  double weights = 0;  // all tensors
  // additional memory for loading and for a run; on a GPU including the first cache pages
  double workspace = 0;
  double cache_per_token = 0;  // keys and values; pages are allocated as a sequence grows
  bool is_f32 = false;         // some weights are f32, so --dtype bf16 needs less
  /// Bytes that must be free to load and run the model.
  double needed() const { return weights + workspace; }
};
/// The sum of two plans.
inline MemoryPlan operator+(const MemoryPlan& a, const MemoryPlan& b) {
  return {.weights = a.weights + b.weights,
          .workspace = a.workspace + b.workspace,
          .cache_per_token = a.cache_per_token + b.cache_per_token,
          .is_f32 = a.is_f32 || b.is_f32};
}

/// Bytes of keys and values of one position. A double, because they may exceed 2^63 in a scaled model.
double cache_bytes_per_token(const ModelConfig& config, kernels::DType type);
/// The plan of a model on the CPU.
/// @param config  the scaled configuration, if the model will be scaled
/// @param dtype   of weights and cache
MemoryPlan memory_plan(const ModelConfig& config, kernels::DType dtype);
/// The plan of a model on the CPU whose quantised matrices stay quantised (LoadOptions::as_stored); its cache is f16.
MemoryPlan memory_plan_as_stored(const ModelFiles& files, const kernels::Ops& ops);
/// The plan of a model by default on the CPU: as_stored if its weights are quantised, else in its own type.
MemoryPlan default_memory_plan(const ModelFiles& files);
/// The plan of a model on a GPU. It contains the packed matrices, the first eight cache pages, and
/// for prefill forwards of 256 rows and steps of at most 128 rows the row buffers, staged keys and
/// values, logits and scratch memory. It does not contain further pages, CUDA graphs and copies for
/// a penalty. A prefill forward has at most as many rows as a prompt that fills the context.
/// @param prompt_block  of the device; if not 0, a prefill forward has four blocks, or as many as
///                      the context holds
MemoryPlan gpu_memory_plan(const ModelConfig& config,
                           kernels::DType dtype,
                           const kernels::Ops& ops,
                           int prompt_block = 0);

/// The plan of draft heads, including a copy of the target's embedding if they read it, but without
/// the target's first layer.
/// @param with_table  includes the table of Chimera's k-grams, which is always in host memory
MemoryPlan memory_plan(const HeadsConfig& config, kernels::DType dtype, bool with_table = true);
/// The plan of draft heads on a device, including the target's first layer if they read it, and on
/// the CPU the table.
/// @param config, target  scaled, if the target will be scaled
MemoryPlan memory_plan(const HeadsConfig& config,
                       const ModelConfig& target,
                       kernels::DType dtype,
                       kernels::Device& device);

/// Bytes that this process may still allocate: the smallest of the system's available memory,
/// the rest of the control group's limit, and the rest of the address space's limit. 2^63 - 1 if none of
/// them is known.
std::int64_t available_memory_bytes();

/// A size as text: "2.61 TB", "23.9 GB", "5.9 MB".
std::string size_words(double bytes);

/// Checks a plan against the available memory.
/// @param name       of the model, for the message
/// @param available  bytes
/// @param gpu        name of the GPU whose memory it is; empty: the host
/// @throws Error(Resources)  with both sizes, if the plan needs more than `available`
void check_memory(const std::string& name,
                  const ModelScale& scale,
                  const MemoryPlan& plan,
                  std::int64_t available,
                  const std::string& gpu = {});

}  // namespace engine
