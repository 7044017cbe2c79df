// What a step of so many rows takes on this machine, a forward and the keeping of its first row: of
// `bench step`, and of trees sized to it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace engine {
class DraftHeads;
class Model;
}  // namespace engine
namespace kernels {
class Device;
}

namespace app {

struct StepTiming {
  std::vector<int> rows;  // of each text in each forward measured
  int context = 128;      // committed tokens before them
  int repeat = 15;
  int n_texts = 1;  // in a forward
};

/// Steps as a race has them: a few behind each prompt, drafts between them.
struct RaceTiming {
  std::vector<int> steps;  // behind a prompt, ascending, from 1
  /// What drafts before every step, at most one of them; or null.
  engine::Model* draft = nullptr;
  engine::DraftHeads* heads = nullptr;
  int n_forwards = 4;  // of the draft, each of one row; or heads that are asked
  /// Tokens of each prompt that are read anew, the others being shared with the prompts before it;
  /// 0: all.
  int n_anew = 0;
};

struct StepTimes {
  std::vector<double> ms;        // a median each of StepTiming::rows; fewer after Ctrl+C
  std::int64_t cache_bytes = 0;  // of the pages in use meanwhile
  // On a GPU, of one step of the first row count, the last of them: launches, and the kernels in
  // them. What the step before it keeps is copied there with its own kernels.
  std::int64_t n_launches = 0, n_kernels = 0;
};

/// Medians of a step that computes the logits of every row and keeps the first, the row counts
/// interleaved. Each repeat begins behind `context` tokens again. After Ctrl+C those of the repeats
/// so far.
/// @param progress  told after each repeat how many are done, of timing.repeat; or empty
StepTimes time_steps(engine::Model& model,
                     const StepTiming& timing,
                     const std::function<void(int done)>& progress = {});

/// The mean of the first so many steps behind a prompt, ms: a median over the repeats.
struct MeanSteps {
  int steps = 0;
  double ms = 0;        // of a step of the target
  double draft_ms = 0;  // of what drafts before it
};

/// Of each row count what the first steps behind prompts take; each prompt is read anew, and that
/// is not timed. The row counts take turns. After Ctrl+C those of the repeats so far.
/// @param progress  as time_steps
std::vector<std::vector<MeanSteps>> time_race_steps(
    engine::Model& model,
    const StepTiming& timing,
    const RaceTiming& race,
    const std::function<void(int done)>& progress = {});

/// At how many GB/s this CPU's memory is read, which takes some tenths of a second; none of a
/// device that is no CPU, nor after Ctrl+C.
std::optional<double> read_gbps(kernels::Device& device);

/// The median time of asking all heads once, Chimera's one after another along a chain, behind so
/// many tokens; ms. 0 after Ctrl+C.
/// @param dim  of the hidden states they read: the loaded target's
double time_heads(engine::DraftHeads& heads, int dim, const StepTiming& timing);

}  // namespace app
