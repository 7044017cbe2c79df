// An evaluation that is kept as it goes: hours of it survive being stopped.
#pragma once

#include <functional>
#include <string>

#include "engine/train/run/evaluate.h"

namespace engine {

/// The figures of to_json, back; of the runs themselves (steps, decoders' metrics) nothing is told.
/// @param where  for messages
/// @throws Error(BadInput)
Evaluation evaluation_from(const std::string& json, const std::string& where);

/// As evaluate(), task by task: each one's figures go into a file when it is done, and those of the
/// file are not measured again. What the file has of other weights, problems or numbers of them is
/// dropped.
/// @param path     made if absent
/// @param weights  hash of the model's
/// @throws Error(Resources)  if it cannot be written
Evaluation evaluate_on(Model& model,
                       const EvaluationSettings& settings,
                       const std::string& path,
                       const std::string& weights,
                       const std::function<bool(int, int)>& progress = {});

}  // namespace engine
