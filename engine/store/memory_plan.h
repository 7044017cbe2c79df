// What a model takes in memory, known before any of it is taken.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/config.h"
#include "kernels/dtype.h"
#include "kernels/ops.h"

namespace engine {

struct HeadsConfig;  // engine/checkpoint/heads_files.h

/// Bytes, as real numbers: a scale that nobody can hold may pass 2^63.
struct MemoryPlan {
  double weights = 0;    // of all tensors
  double workspace = 0;  // what loading and a run take beside them, and on a GPU the first pages
  double cache_per_token = 0;  // keys and values; taken page by page as text grows
  double needed() const { return weights + workspace; }
};
/// Of two models together.
inline MemoryPlan operator+(const MemoryPlan& a, const MemoryPlan& b) {
  return {.weights = a.weights + b.weights,
          .workspace = a.workspace + b.workspace,
          .cache_per_token = a.cache_per_token + b.cache_per_token};
}

/// @param config  scaled, if the model is to be
/// @param dtype   of weights and cache
MemoryPlan memory_plan(const ModelConfig& config, kernels::DType dtype);
/// The same on a GPU: matrices as they are packed there, and of a prompt in forwards of 256 rows
/// and steps of at most 128 the rows, their staged keys and values, logits, working memory, and the
/// cache's first eight pages. More pages, graphs and what a penalty copies come on top. No prompt
/// has more rows than the context has positions to read.
/// @param prompt_block  of the device: where it is not 0 a prompt goes in forwards of four blocks,
///                      or of as many as its context holds
MemoryPlan gpu_memory_plan(const ModelConfig& config,
                           kernels::DType dtype,
                           const kernels::Ops& ops,
                           int prompt_block = 0);

/// The same of draft heads; the target's embedding is there once more where they read it.
/// @param with_table  with that of Chimera's k-grams, which is the host's wherever the heads are
MemoryPlan memory_plan(const HeadsConfig& config, kernels::DType dtype, bool with_table = true);

/// Bytes this process may still take: the least of what the system calls available, the limit of
/// its control group and the limit of its address space. 2^63 - 1 where none of them is known.
std::int64_t available_memory_bytes();

/// "2.61 TB", "23.9 GB", "5.9 MB".
std::string size_words(double bytes);

/// @param name       of the model
/// @param available  bytes
/// @param gpu        whose memory it is; empty: the host's
/// @throws Error(Resources)  giving both sizes, if the plan needs more than `available`
void refuse_what_does_not_fit(const std::string& name,
                              const ModelScale& scale,
                              const MemoryPlan& plan,
                              std::int64_t available,
                              const std::string& gpu = {});

}  // namespace engine
