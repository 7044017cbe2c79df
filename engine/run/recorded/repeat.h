// Repeats a recorded run with its prompt, settings and random numbers, and with the sizes that it
// chose. Sizes on "auto" follow measured times and differ from run to run, and under rejection sampling
// the same seed gives the same tokens only with the same sizes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/run/run.h"

namespace engine {

class Timeline;

/// A run of a recording.
struct RecordedRun {
  RunStarted started;
  ModelLoaded model;
  std::optional<ModelLoaded> draft;  // its draft model or heads
  std::vector<std::int32_t> choices;
  std::vector<TokenId> tokens;  // generated
  int n_steps = 0;
};

/// Takes a run from a recording.
/// @param run  its number; 0: the first one
/// @throws Error(BadInput)  if the recording has no such run, lacks its model, or lacks the sizes of a
///                          run whose tokens depend on them
RecordedRun recorded_run(const Timeline& timeline, RunId run);

/// The same from a recording's file.
/// @param notices  receives the faults of the file
/// @throws Error  as load_recording() too
RecordedRun read_recorded_run(const std::string& path,
                              RunId run,
                              std::vector<std::string>& notices);

/// Checks that the loaded models have the weights, dtypes and scale of the recorded ones.
/// @throws Error(Usage)  if they differ
void check_models(const RecordedRun& recorded, const RunModels& models);

/// The request that repeats the run.
RunRequest request_of(const RecordedRun& recorded, const Model& model);

/// Compares the result with the recorded run.
RunResult::Repetition compared(const RecordedRun& recorded, const RunResult& result);

}  // namespace engine
