// Measures the time of a step by its number of rows, for `bench step` and `model tree`. A timed
// step is a forward pass and the commit of its first row.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/cpu/op_times.h"

namespace engine {
class DraftHeads;
class Model;
}  // namespace engine
namespace kernels {
class Device;
}

namespace app {

/// The steps to time.
struct StepTiming {
  std::vector<int> rows;  // the numbers of rows per sequence to time
  int context = 128;      // committed tokens before these rows
  int repeat = 15;
  int n_texts = 1;         // sequences per forward
  bool breakdown = false;  // on a CPU, times each kind of operation
};

/// Settings for timing steps as in generation: the first steps after a prompt, with drafting
/// between.
struct RaceTiming {
  std::vector<int> steps;  // numbers of steps after a prompt, ascending, from 1
  /// The draft model or heads that run before each step; at most one is not null.
  engine::Model* draft = nullptr;
  engine::DraftHeads* heads = nullptr;
  int n_forwards = 4;  // draft forwards of one row before each step, or number of heads evaluated
  /// Number of tokens at the end of a prompt that it does not share with earlier prompts; 0: all
  /// tokens.
  int n_new_tokens = 0;
};

/// Means over the timed steps of one number of rows.
struct StepBreakdown {
  double ms = 0;                // of a step
  kernels::cpu::OpTimes ops{};  // of its operations
};

/// Timings by number of rows.
struct StepTimes {
  std::vector<double> ms;                // medians, one per StepTiming::rows; fewer after Ctrl+C
  std::vector<StepBreakdown> breakdown;  // one per StepTiming::rows, with StepTiming::breakdown
  std::int64_t cache_bytes = 0;          // of the KV cache pages in use
  // On a GPU: launches of the last step with the first number of rows, and the kernels in them.
  // They include the kernels that commit the previous step.
  std::int64_t n_launches = 0, n_kernels = 0;
};

/// Times steps that compute the logits of every row and commit the first. Row counts alternate;
/// each repeat starts after `context` tokens. After Ctrl+C returns the medians so far.
/// @param progress  called with the number of repeats done; may be empty
StepTimes time_steps(engine::Model& model,
                     const StepTiming& timing,
                     const std::function<void(int done)>& progress = {});

/// Mean times over the first `steps` steps after a prompt; medians of the repeats.
struct MeanSteps {
  int steps = 0;
  double ms = 0;        // time of a step of the target
  double draft_ms = 0;  // time of drafting before the step
};

/// Times the first steps after prompts, for each row count; prefill is not timed. Row counts
/// alternate. After Ctrl+C returns the times so far.
/// @param progress  as time_steps()
std::vector<std::vector<MeanSteps>> time_race_steps(
    engine::Model& model,
    const StepTiming& timing,
    const RaceTiming& race,
    const std::function<void(int done)>& progress = {});

/// Measures the bandwidth of reading memory, in some tenths of a second; nullopt if the device is
/// not a CPU, or after Ctrl+C.
std::optional<double> read_gbps(kernels::Device& device);

/// The median time, in ms, to evaluate all heads once. Chimera's heads are evaluated one after the
/// other along a chain. 0 after Ctrl+C.
/// @param dim  the hidden size of the target
double time_heads(engine::DraftHeads& heads, int dim, const StepTiming& timing);

}  // namespace app
