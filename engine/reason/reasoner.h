// What the window asks of reasoning, done: questions of a task by chain of thought (cot.h) or by
// trees of thoughts (tot.h), with how each ended and what came of all told on the stream.
#pragma once

#include <string>

#include "engine/run/reasoning.h"

namespace engine {

/// @param assets_dir  whose prompts and worked examples are used
/// @param data_dir    the folder of the open sets; empty: there is none, and a command that asks
///                    one is refused
Reasoner reasoner(std::string assets_dir, std::string data_dir);

}  // namespace engine
