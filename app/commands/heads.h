// The commands of `model` on draft heads: information, validation, random heads, token trees.
#pragma once

#include <string>
#include <vector>

#include "app/cli/commands.h"

namespace app {

/// True if a path or bundled name is a directory of draft heads.
bool names_heads(const std::string& name_or_path, const engine::FileLimits& limits);
/// `model info` and `model validate` for draft heads.
int heads_info(const ModelCommandOptions& options);
/// Messages on the faults that `model validate --scan` finds in the weights of draft heads.
std::vector<std::string> scan_heads(const ModelCommandOptions& options);
/// `model random --heads`.
int random_heads(const ModelCommandOptions& options);
/// `model tree`.
int head_tree(const ModelCommandOptions& options);

}  // namespace app
