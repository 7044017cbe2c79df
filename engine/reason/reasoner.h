// Runs the reasoning commands of the window: questions by chain of thought (cot.h) or by tree of thoughts
// (tot.h). Reports each answer and the final accuracy as notices on the event stream.
#pragma once

#include <string>

#include "engine/run/reasoning.h"

namespace engine {

/// The function that the engine thread calls for a reasoning command.
/// @param assets_dir  the folder of prompts and few-shot examples
/// @param data_dir    the folder of the open data sets; empty: commands that need one are refused
Reasoner reasoner(std::string assets_dir, std::string data_dir);

}  // namespace engine
