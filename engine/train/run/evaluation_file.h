// Evaluations saved task by task, so that a stopped one can be resumed.
#pragma once

#include <functional>
#include <string>

#include "engine/train/run/evaluate.h"

namespace engine {

/// Parses the output of to_json(), which does not contain steps and metrics of decoders.
/// @param where  for messages
/// @throws Error(BadInput)
Evaluation evaluation_from(const std::string& json, const std::string& where);

/// Like evaluate(), but saves the scores of each task to a file and skips tasks that are in the
/// file. Removes scores of other weights or other problems from the file.
/// @param path     the file; created if absent
/// @param weights  hash of the model's weights
/// @throws Error(Resources)  if it cannot be written
Evaluation evaluate_on(Model& model,
                       const EvaluationSettings& settings,
                       const std::string& path,
                       const std::string& weights,
                       const std::function<bool(int, int)>& progress = {});

}  // namespace engine
