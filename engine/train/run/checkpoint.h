// A checkpoint of a training run: everything that the next step depends on. It is written to a
// temporary file, which then replaces the old checkpoint, so the directory always has a complete
// one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace engine {

/// The state of a run between two steps.
struct Checkpoint {
  std::string recipe;   // to_json of the recipe
  std::string compute;  // name_of(Compute) of the run
  int shards = 0;
  std::int64_t step = 0;
  std::int64_t tokens = 0;     // rows trained on, without padding
  std::int64_t next_text = 0;  // index of the first text not yet packed
  double seconds = 0;          // training time so far
  std::string packer;          // Packer::save(), or the RoomCounts of a consistency training
  std::vector<float> parameters, mean, square;  // weights and AdamW's two moments
};

/// Replaces the file.
/// @throws Error(Resources)  if the file cannot be written
void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Reads the file.
/// @throws Error(BadInput)  if it is truncated, altered or of another version
Checkpoint read_checkpoint(const std::string& path);

/// True if the directory holds the result of a finished run. It compares the age of the model card,
/// README.md, which is written last: a run killed after its last checkpoint has no card or an old
/// one.
bool result_is_written(const std::string& directory);

}  // namespace engine
