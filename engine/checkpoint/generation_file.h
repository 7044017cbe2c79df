// generation_config.json: the sampling settings recommended by a model's authors.
#pragma once

#include <optional>
#include <string>

#include "engine/base/limits.h"

namespace engine {

struct ConfigFile;

/// Settings of generation_config.json that this program can apply; nullopt if absent.
struct GenerationDefaults {
  bool do_sample = false;  // false: greedy decoding
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k, max_new_tokens;
};
/// How these settings are used. NotApplied and Applied both add a notice that names them. Silent
/// ignores them without a notice; it is for draft models.
enum class GenerationUse { NotApplied, Applied, Silent };

/// Reads the end-of-sequence ids into file.config and the other settings into `defaults`. Notices
/// name the members that are applied and those that are not.
/// @throws Error(BadInput)  also for a setting out of range, if `use` is Applied
void read_generation_config(const std::string& path,
                            const FileLimits& limits,
                            GenerationUse use,
                            ConfigFile& file,
                            GenerationDefaults& defaults);

}  // namespace engine
