// Draft heads among the models: looked at, made at random, and the trees they are asked for.
#pragma once

#include <string>

#include "app/cli/commands.h"

namespace app {

/// Whether a path, or the name of something bundled, is a directory of heads.
bool names_heads(const std::string& name_or_path, const engine::FileLimits& limits);
/// `model info` and `model validate` of heads.
int heads_info(const ModelCommandOptions& options);
/// `model random --heads`.
int random_heads(const ModelCommandOptions& options);
/// `model tree`.
int head_tree(const ModelCommandOptions& options);

}  // namespace app
