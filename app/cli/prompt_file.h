// JSON Lines of prompts: {"id": ..., "prompt": ..., "seed": optional}; other fields are ignored, so
// records of `data generate` are prompt files as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/input_file.h"
#include "engine/base/limits.h"

namespace app {

struct Prompt {
  std::string id;
  std::string text;
  std::string place;  // "file:line"; empty: of no file
  std::optional<std::uint64_t> seed;
};

/// @param path    a file or, where `pipes` may be read, a pipe or "-" for standard input
/// @param limits  prompt_bytes of a line, json_depth
/// @throws Error(BadInput)  "file:line: ..." for anything else, or if there are none; as
///                          engine::read_text_input
std::vector<Prompt> read_prompts(const std::string& path,
                                 const engine::FileLimits& limits = {},
                                 engine::Pipes pipes = engine::Pipes::Read);

}  // namespace app
