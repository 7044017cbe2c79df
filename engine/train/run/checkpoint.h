// A training run between two steps, on disk: everything the next step depends on. Written beside
// the old one and renamed, so that whenever the process dies one whole checkpoint is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace engine {

struct Checkpoint {
  std::string recipe;   // to_json of the recipe
  std::string compute;  // name_of(Compute) the run uses
  int shards = 0;
  std::int64_t step = 0;
  std::int64_t tokens = 0;                      // rows that held a text
  std::int64_t next_text = 0;                   // index of the first text not yet packed
  double seconds = 0;                           // of training so far
  std::string packer;                           // Packer::save, or RoomCounts of cllm/trainer.h
  std::vector<float> parameters, mean, square;  // weights and AdamW's two moments
};

/// @throws Error(Resources)  if the disk refuses
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// @throws Error(BadInput)  if the file is cut, altered or of another version
Checkpoint read_checkpoint(const std::string& path);

/// Whether what a finished run makes lies in its directory. Its card, README.md, is written last,
/// behind the last checkpoint: a run that was killed in between has none, or that of a run before.
bool result_is_written(const std::string& directory);

}  // namespace engine
