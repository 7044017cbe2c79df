// generation_config.json: the sampling that a model's makers recommend.
#pragma once

#include <optional>
#include <string>

#include "engine/base/limits.h"

namespace engine {

struct ConfigFile;

/// Members of generation_config.json that this program can apply; unset: the file lacks it.
struct GenerationDefaults {
  bool do_sample = false;  // without it transformers takes the likeliest token
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k, max_new_tokens;
};
/// How these defaults are used: NotApplied and Applied add a notice that names them; Silent, for a
/// model that only drafts, ignores them.
enum class GenerationUse { NotApplied, Applied, Silent };

/// Reads the end-of-sequence ids into file.config and the other defaults into `defaults`; notices say
/// which members are applied and which are not.
/// @throws Error(BadInput)  also for a default out of its range, if `use` is Applied
void read_generation_config(const std::string& path,
                            const FileLimits& limits,
                            GenerationUse use,
                            ConfigFile& file,
                            GenerationDefaults& defaults);

}  // namespace engine
